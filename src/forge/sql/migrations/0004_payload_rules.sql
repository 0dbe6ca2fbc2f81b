-- What dispatch from SQL validates, by the same rules as Python: names, times, priorities, JSON, and
-- what the payload of a category must and must not contain.

-- Arguments ---------------------------------------------------------------------------------------

create function forge_check_name(value text, what text) returns text
    language plpgsql immutable parallel safe as $$
begin
    if value is null or value !~ '\S' then
        raise exception '% must be text that is not empty', what
            using errcode = 'invalid_parameter_value', hint = 'give it at least one visible character';
    elsif length(value) > 255 then
        raise exception '% must have at most 255 characters, not %', what, length(value)
            using errcode = 'string_data_right_truncation', hint = 'shorten it';
    elsif value ~ '[\x01-\x1f\x7f]' then
        raise exception '% has a control character', what
            using errcode = 'invalid_parameter_value', hint = 'remove it';
    end if;
    return value;
end
$$;

create function forge_check_moment(value timestamptz, what text) returns timestamptz
    language plpgsql immutable strict parallel safe as $$
begin
    if value not between '1970-01-01 00:00:00+00' and '9000-12-31 23:59:59+00' then
        raise exception '% % is not a time to run at', what, value
            using errcode = 'invalid_parameter_value', hint = 'use a time between the years 1970 and 9000';
    end if;
    return value;
end
$$;

create function forge_check_priority(value text) returns integer
    language plpgsql immutable strict parallel safe as $$
declare
    found integer := case lower(value)
        when 'critical' then 100 when '100' then 100
        when 'high' then 75 when '75' then 75
        when 'normal' then 50 when '50' then 50
        when 'low' then 25 when '25' then 25
        when 'background' then 0 when '0' then 0
    end;
begin
    if found is null then
        raise exception 'unknown priority %', quote_literal(value)
            using errcode = 'invalid_parameter_value',
                  hint = 'use critical (100), high (75), normal (50), low (25) or background (0)';
    end if;
    return found;
end
$$;

-- Rejects JSON that Python cannot read or does not store: too long, nested too deeply, or with a number
-- that has too many digits. jsonb itself rejects NUL characters.
create function forge_check_json(value jsonb, what text) returns void
    language plpgsql immutable strict parallel safe as $$
declare
    written constant text := value::text;
    bare text;
    nested text;
begin
    if octet_length(written) > 262144 then
        raise exception '% is % bytes of JSON, the limit is 262144', what, octet_length(written)
            using errcode = 'program_limit_exceeded', hint = 'store the content elsewhere and pass a reference to it';
    elsif length(written) < 130 then
        return;  -- too short for 65 levels or 309 digits
    end if;
    bare := regexp_replace(written, '"(\\.|[^"\\])*"', '', 'g');
    nested := translate(regexp_replace(bare, '[^][{}]', '', 'g'), '{}', '[]');
    for _ in 1..64 loop
        exit when nested = '';
        nested := replace(nested, '[]', '');  -- removes the innermost level
    end loop;
    if nested <> '' then
        raise exception '% is nested deeper than 64 levels', what
            using errcode = 'program_limit_exceeded', hint = 'flatten it';
    elsif exists (select from regexp_matches(bare, '([0-9]+)(\.[0-9]+)?', 'g') as number
                  where length(number[1]) > case when number[2] is null then 4300 else 308 end) then
        raise exception '% contains a number with too many digits', what
            using errcode = 'numeric_value_out_of_range',
                  hint = 'pass it as text; a whole number may have 4300 digits, one with a fraction 308 before the point';
    end if;
end
$$;

-- The payload version in the payload, if it has one.
create function forge_payload_version(payload jsonb) returns text
    language sql immutable parallel safe
    return case when jsonb_typeof(payload -> 'payload_version') = 'string' then payload ->> 'payload_version' end;

-- The value of an argument that can also be in the payload; where both are given they must be equal.
create function forge_agreed(what text, inside jsonb, outside text) returns text
    language plpgsql immutable parallel safe as $$
declare
    said text := case when jsonb_typeof(inside) in ('string', 'number') then inside #>> '{}' end;
begin
    if said is null and inside is not null and inside <> 'null' then
        raise exception '$.% in the payload is neither text nor a number', what
            using errcode = 'invalid_parameter_value', hint = 'correct it';
    elsif said <> outside and lower(said) <> lower(outside) then
        raise exception '$.% in the payload and the argument % differ', what, what
            using errcode = 'invalid_parameter_value', hint = 'leave one of them out';
    elsif coalesce(said, outside) is null then
        raise exception '$.% is required', what
            using errcode = 'invalid_parameter_value', hint = format('pass %s =>, or put it into the payload', what);
    end if;
    return coalesce(said, outside);
end
$$;

-- Sensitive content -------------------------------------------------------------------------------

-- Splits a name into words at punctuation, capitals and digits.
create function forge_words(name text) returns text[]
    language sql immutable strict parallel safe
    return array(
        select lower(word[1])
        from regexp_matches(
            regexp_replace(normalize(left(name, 200), nfkc), '[\u00ad\u200b-\u200f\u2060\ufeff]', '', 'g'),
            '[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\u0001-\u007f]+|\d+', 'g') as word);

-- Whether a card network issues such numbers, and the check digit is right.
create function forge_is_card(digits text) returns boolean
    language sql immutable strict parallel safe
    return case when digits ~ '^(4(\d{12}|\d{15}|\d{18})|(5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(6011|65\d\d|64[4-9]\d)\d{12,15}|35(2[89]|[3-8]\d)\d{12,15}|62\d{14,17})$'
                then (select sum(digit::integer * (2 - place % 2) / 10 + digit::integer * (2 - place % 2) % 10) % 10 = 0
                      from regexp_split_to_table(reverse(digits), '') with ordinality as sign (digit, place))
                else false end;

-- What a text looks like if it does not belong in a job; null for an unsuspicious one.
create function forge_looks_like(value text) returns text
    language plpgsql immutable strict parallel safe as $$
declare
    head text;
    header text[];
begin
    -- A fast check: most texts match none of the patterns below.
    if length(value) < 6 or length(value) <= 512
       and value !~* 'eyJ|-----BEGIN|AKIA|ASIA|gh[pousr]_|github_pat_|xox|sk_|AIza|glpat-|://|(passw(or)?d|passphrase|key|secret|token)["''\\]*\s*[:=]|bearer|basic|\d-\d\d-\d|(\d\D?){12}\d|data:|[<%{\n]|-version:|-encoding:|^(JVBE|UEsD|0M8R|e1xy|RnJv|UmVj|TUlN|UmV0|U3Vi)'
    then
        return null;
    end if;
    head := left(value, 1000);
    header := regexp_match(head, '\y(bearer|basic)\s+([\w+/.~-]{6,})', 'i');
    return case
        when head ~ '\yeyJ[\w-]{8,}\.[\w-]{4,}\.' then 'a JSON web token'
        when head ~ '-----BEGIN [A-Z0-9 ]*PRIVATE KEY' then 'a private key'
        when head ~ '\y((AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{30,}|github_pat_\w{30,}|xox[abprs]-[\w-]{10,}|sk_(live|test)_\w{10,}|AIza[\w-]{35}|glpat-[\w-]{20})'
            then 'an access key'
        when head ~ '\y\w[\w+.-]{0,20}://[^/\s:@]*:[^/\s@]+@' then 'a URL with a password'
        when head ~* '(password|passwd|passphrase|api[_-]?key|client[_-]?secret|access[_-]?token|refresh[_-]?token|private[_-]?key)["''\\]*\s*[:=]\s*["''\\]*[^\s"''&,;}\\]{3,}'
            then 'a secret with its name'
        when head ~ '\y(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}\y(?!-)' then 'a social security number'
        when lower(header[1]) = 'bearer' and (length(header[2]) >= 20 or header[2] ~ '\d') then 'bearer credentials'
        when case when lower(header[1]) = 'basic' and header[2] ~ '^[A-Za-z0-9+/]+$' and length(header[2]) % 4 <> 1
                  then position('\x3a'::bytea in decode(rpad(header[2], (length(header[2]) + 3) / 4 * 4, '='), 'base64')) > 0
             end then 'basic credentials'
        when head ~ '(\d\D?){12}\d' and head !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            and exists (select from regexp_matches(
                            normalize(head, nfkc),
                            '(?<![0-9A-Za-z])\d(?:[ ._\u2010-\u2015\u00a0-]{0,2}\d)+(?![0-9A-Za-z])', 'g') as run
                        where forge_is_card(regexp_replace(run[1], '\D', '', 'g')))
            then 'a card number'
        when head ~* '^\s*data:[\w.+/-]*;base64,' then 'an embedded file'
        when head ~* '<!doctype html|<html[\s>]|<body[\s>]|^%PDF-|^\{\\rtf|^[ \t\r\n]*<\?xml|^[ \t\r\n]*<(p|div|table|center|blockquote|span|ul|ol|h[1-6])[ \t\r\n>]|</(p|div|table|td|tr|ul|ol|li|blockquote|span|h[1-6])>'
            then 'an embedded document'
        when head ~* '(?w)^mime-version:\s*\d|^content-transfer-encoding:|\A[ \t\r\n]*(dear|hi|hello)[ \t][^\r\n,]{1,60},[ \t]*\r?\n'
            then 'an embedded mail'
        when head ~ '^(JVBERi0|UEsDB[AB]|0M8R4KGx|e1xydG|RnJvbTog|UmVjZWl2ZWQ6|TUlNRS1WZXJz|UmV0dXJuLVBhdGg6|U3ViamVjdDog)[A-Za-z0-9+/=_\r\n-]{8,}$'
            then 'an embedded file in base64'
        when position(E'\n' in head) > 0
            -- at least two kinds of headers: sender, recipient, subject or date
            and (head ~* '(?w)^(from|sender|reply-to|return-path|received|delivered-to|message-id):[ \t]*[^ \t\r\n]')::integer
              + (head ~* '(?w)^(to|cc|bcc):[^\r\n]*@')::integer
              + (head ~* '(?w)^(subject|date):[ \t]*[^ \t\r\n]')::integer > 1 then 'an embedded mail'
        when length(head) > 512 and head ~ '^[\w+/=-]+(\r?\n[\w+/=-]+)*\s*$' and head ~ '[^[:alpha:]]'
            then 'an embedded file in base64'
        when length(value) > 1000 then 'an embedded text of more than 1,000 characters'
    end;
end
$$;

-- Whether the last word of a name makes it the name of an id or a figure, whatever the rest says.
create function forge_refers(word text) returns boolean
    language sql immutable parallel safe
    return word in ('id', 'ids', 'ref', 'refs', 'reference', 'uuid', 'name', 'type', 'kind', 'version', 'count', 'counts',
                    'limit', 'size', 'length', 'usage', 'ttl', 'at', 'on', 'until', 'expiry', 'expires', 'status', 'policy',
                    'hint', 'url', 'uri', 'path');

-- Whether a name is the name of an id or a figure.
create function forge_is_reference(name text) returns boolean
    language sql immutable strict parallel safe
    return (select forge_refers(words[cardinality(words)]) from forge_words(name) as words);

-- Whether a name can be one of a secret or a body. A fast check: most names contain none of the words.
create function forge_may_be_secret(name text) returns boolean
    language sql immutable parallel safe
    return octet_length(name) <> length(name)
        or regexp_replace(lower(left(name, 200)), '[^a-z0-9]', '', 'g')
           ~ 'passw|passphrase|passcode|secret|apikey|authorization|credential|privatekey|accesskey|encryptionkey|signingkey|creditcard|cardnum|socialsecurity|bankaccount|passportnumber|cookie|token|pwd|jwt|bearer|ssn|cvv|cvc|pin|otp|iban|body|content|doc|attachment|letter|transcript|html|markdown|mail|message|text|file|plain|raw';

-- Whether a value under this name is a secret: the name says so, and the value is not empty or a figure.
create function forge_is_secret(name text, value jsonb) returns boolean
    language plpgsql immutable strict parallel safe as $$
declare
    words constant text[] := forge_words(name);
    joined constant text := replace(array_to_string(words, ''), 'secretar', '');
begin
    return (joined ~ 'password|passwd|passphrase|passcode|secret|apikey|authorization|credential|privatekey|accesskey|encryptionkey|signingkey|creditcard|cardnum|socialsecurity|bankaccount|passportnumber|setcookie|tokens?$'
            or words && '{token,tokens,pwd,jwt,bearer,cookie,cookies,ssn,cvv,cvc,pin,otp,iban}')
        and not forge_refers(words[cardinality(words)])
        and jsonb_typeof(value) not in ('null', 'boolean') and value not in ('""', '[]', '{}')
        and not (jsonb_typeof(value) = 'number'
                 and (words[1] in ('max', 'min', 'num', 'number', 'total', 'has', 'is', 'needs', 'uses', 'with')
                      or words[cardinality(words)] = 'tokens'));
end
$$;

-- What a name says about its value, as level + 10 * inside. The level is what makes a text under it
-- content: 1 a letter, 2 prose, 3 a text that is not a reference, 4 any text. Inside is what the names
-- above (the argument) and this name (the result) mean for the names within: 1 a document, 2 a body.
create function forge_content_place(name text, inside integer, beside_subject boolean) returns integer
    language plpgsql immutable strict parallel safe as $$
declare
    words text[] := forge_words(name);
    last text := words[cardinality(words)];
    before text := words[cardinality(words) - 1];
    bodies constant text[] := '{body,content,contents}';
    documents constant text[] := '{document,documents,attachment,attachments,letter,letters,transcript,transcripts}';
    mails constant text[] := '{email,emails,mail,mails,message,messages}';
    is_kind boolean;
    own integer;
begin
    if last = '64' and before = 'base' then
        last := 'base64';
        before := words[cardinality(words) - 2];
    elsif last is null or forge_refers(last) then
        return 0;
    end if;
    is_kind := last in ('html', 'text', 'plain', 'raw', 'base64', 'bytes', 'markdown', 'data');
    own := case
        when beside_subject and cardinality(words) = 1
             and last in ('text', 'html', 'plain', 'markdown', 'message', 'raw') then 3
        when last = any (bodies) or is_kind and before = any (bodies) then 4
        when is_kind and before = any (documents || mails || '{file,files,doc,docs}') then 3
        when before in ('full', 'plain', 'raw', 'mime', 'html') and (last = 'text' or last = any (mails))
             or last = any (documents) or last in ('html', 'markdown') or last = 'mime' and before = any (bodies) then 2
        when last = 'text' or last = any (mails) then 1
        else 0 end;
    return greatest(own, case when inside > 0 and is_kind then 3 when inside = 2 then 2 else 0 end)
           + 10 * case when own = 4 or inside = 2 then 2 when own > 0 then 1 else inside end;
end
$$;

-- Whether a text under a name of this level is content rather than a reference to it.
create function forge_is_content(value text, level integer) returns boolean
    language plpgsql immutable strict parallel safe as $$
declare
    said constant text := btrim(left(value, 1000), E' \t\r\n');
begin
    if level = 0 or said = '' then
        return false;
    elsif level = 4 then
        return true;
    elsif level = 1 then
        return said ~* '^(dear|hi|hello|hey|good (morning|day|afternoon|evening))[ \t][^\r\n,.!?;:]{1,40}[,!][ \t\r\n]|\n[ \t\r]*\n'
            or length(said) > 500 and said ~ '[ \t\r\n]';
    elsif level = 2 and length(said) <= 120 and said !~ '[ \t\r\n]|<[A-Za-z!/?]|[^\u0001-\u007f]{12}' then
        return false;
    end if;
    -- a URL, a media type, a file name, an address, or a label with a number
    return said !~* '^([a-z][a-z0-9+.-]*://[^ \t\r\n<>]+|[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[^ \t\r\n]+)?|[^\r\n<>]+\.(pdf|docx?|xlsx?|pptx?|txt|csv|html?|md|rtf|od[tsp]|png|jpe?g|gif|tiff?|zip|eml|msg|xml|json)|[^\r\n<>@]*<[^ \t\r\n<>@]+@[^ \t\r\n<>@]+>|[a-z]+[ #.-]{1,3}(no\.? ?)?[0-9][a-z0-9./-]*)$';
end
$$;

-- Rejects a payload that contains something sensitive, by its name or its value. The error says where,
-- never what. Values under an allowed name or path are not checked.
create function forge_check_sensitive(payload jsonb, allowed text[]) returns void
    language plpgsql immutable parallel safe as $$
declare
    names constant text[] := array(
        select array_to_string(forge_words(entry), '') from unnest(allowed) as entry where not starts_with(entry, '$'));
    found record;
begin
    with recursive parts (path, any_path, name, name_shape, alias, value, place) as (
        select '$', '$', null::text, null::text, null::text, payload, 0
        union all
        select parts.path || step.path, parts.any_path || step.any_path, step.name, step.name_shape, step.alias,
               step.value, step.place
        from parts
             cross join lateral (
                select shown as path, shown as any_path, key as name, name_shape,
                       -- {"name": "Authorization", "value": "…"}: headers or form fields as a list of pairs
                       case when key = 'value' and jsonb_typeof(named) = 'string' then named #>> '{}' end as alias,
                       held as value, place
                from jsonb_each(case jsonb_typeof(parts.value) when 'object' then parts.value end)
                         as entry (key, held)
                     cross join coalesce(parts.value -> 'name', parts.value -> 'key', parts.value -> 'header') as named
                     cross join forge_looks_like(key) as name_shape
                     cross join lateral (
                        select case when key = 'value' and jsonb_typeof(named) = 'string' then named #>> '{}'
                                    else key end as meant) as said
                     cross join lateral (
                        select case when parts.place >= 10 or forge_may_be_secret(meant)
                                    then forge_content_place(meant, parts.place / 10, parts.value ?| '{subject,Subject}')
                                    else 0 end as place) as standing
                     cross join lateral (
                        select case
                            when name_shape is not null then '["…"]'
                            when length(key) <= 60 and key ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || key
                            else format('[%s]', to_json(left(key, 60))) end as shown) as finding
                union all
                select format('[%s]', index - 1), '[*]', null, null, null, item, parts.place
                from jsonb_array_elements(case jsonb_typeof(parts.value) when 'array' then parts.value end)
                         with ordinality as items (item, index)
                where jsonb_typeof(item) in ('string', 'array', 'object') or length(item #>> '{}') >= 13
             ) as step
        where (parts.path || step.path <> all (allowed) and parts.any_path || step.any_path <> all (allowed)
               or allowed = '{}')
          and (step.name is null or names = '{}' or array_to_string(forge_words(step.name), '') <> all (names))
    )
    select parts.path, finding.what into found
    from parts
         cross join lateral (
            select coalesce(
                'has a name that looks like ' || name_shape,
                case when forge_may_be_secret(coalesce(alias, name)) and forge_is_secret(coalesce(alias, name), value)
                     then 'has the name of a secret' end,
                case when place % 10 > 0 and jsonb_typeof(value) = 'string' and forge_is_content(value #>> '{}', place % 10)
                     then case when name is null then 'is part' else 'has the name' end
                          || ' of an embedded body or document' end,
                case when jsonb_typeof(value) = 'string' then 'looks like ' || forge_looks_like(value #>> '{}')
                     when jsonb_typeof(value) = 'number' and length(value #>> '{}') >= 13 and forge_is_card(value #>> '{}')
                          and forge_is_reference(name) is not true then 'looks like a card number' end) as what) as finding
    where finding.what is not null
    limit 1;
    if found.path is not null then
        raise exception '% %', found.path, found.what
            using errcode = 'invalid_parameter_value',
                  hint = 'store it elsewhere and pass a reference, or allow it with allow_sensitive';
    end if;
end
$$;

-- References and envelope -------------------------------------------------------------------------

-- The primary objects of a category: a payload names at least one, or has another field ending in _id.
create function forge_references(category text) returns text[]
    language sql immutable strict parallel safe
    return case category
        when 'ingestion' then '{connection_id,external_message_id}'::text[]
        when 'sync' then '{connection_id,calendar_id,event_id}'
        when 'recurrence' then '{recurrence_id,period_id}'
        when 'orchestration' then '{execution_id,step_id}'
        when 'documents' then '{document_id}'
        when 'notifications' then '{notification_id,recipient_id,user_id}'
        else '{}' end;

-- Whether a payload has a field with a value that is not empty.
create function forge_has(payload jsonb, name text) returns boolean
    language sql immutable strict parallel safe
    return coalesce(case jsonb_typeof(payload -> name)
                        when 'string' then btrim(payload ->> name, E' \t\r\n') <> ''
                        else payload -> name not in ('null', '[]', '{}') end, false);

-- Rejects a payload without the fields that its type requires, or without a reference of its category.
create function forge_check_references(kind forge_job_types, payload jsonb) returns void
    language plpgsql immutable parallel safe as $$
declare
    envelope constant text[] := case when kind.category is null then '{}'
                                     else array['tenant_id', 'correlation_id', 'idempotency_key'] end;
    names constant text[] := case when kind.requires is null then forge_references(kind.category)
                                  else array(select name from unnest(kind.requires) as name
                                             where name <> all (envelope)) end;
    missing text;
begin
    if coalesce(names, '{}') = '{}' then
        return;
    elsif jsonb_typeof(payload) <> 'object' then
        raise exception 'the payload of % must be an object with %', kind.name, array_to_string(names, ', ')
            using errcode = 'invalid_parameter_value';
    elsif kind.requires is not null then
        select name into missing from unnest(names) as name where not forge_has(payload, name) limit 1;
        if missing is not null then
            raise exception '$.% is required for a % job', missing, coalesce(kind.category, kind.name)
                using errcode = 'invalid_parameter_value', hint = 'pass the id of what is meant';
        end if;
    elsif not exists (select from jsonb_object_keys(payload) as name
                      where (name = any (names) or name like '%\_id' and name <> all (envelope))
                            and forge_has(payload, name)) then
        raise exception '$ has no reference; % jobs carry %, or another field that ends in _id', kind.category,
                        array_to_string(names, ' or ')
            using errcode = 'invalid_parameter_value', hint = 'declare requires=[…] for other fields';
    end if;
end
$$;

-- Returns the payload of a category with tenant, correlation id and idempotency key filled in, or
-- raises an error that says what is missing.
create function forge_ruled_payload(kind forge_job_types, payload jsonb, tenant bigint, correlation uuid, given_key text)
    returns jsonb language plpgsql immutable parallel safe as $$
declare
    envelope constant text[] := array['tenant_id', 'correlation_id', 'idempotency_key'];
    key text;
begin
    if jsonb_typeof(payload) <> 'object' then
        raise exception 'the payload of % must be an object', kind.name using errcode = 'invalid_parameter_value';
    elsif jsonb_typeof(payload -> 'tenant_id') <> 'null'
          and (jsonb_typeof(payload -> 'tenant_id') <> 'number' or payload ->> 'tenant_id' !~ '^-?[0-9]+$') then
        raise exception '$.tenant_id must be a whole number' using errcode = 'invalid_parameter_value';
    elsif jsonb_typeof(payload -> 'correlation_id') <> 'null'
          and (jsonb_typeof(payload -> 'correlation_id') <> 'string'
               or payload ->> 'correlation_id' !~* '^\{?[0-9a-f]{4}(-?[0-9a-f]{4}){7}\}?$') then
        raise exception '$.correlation_id must be a UUID'
            using errcode = 'invalid_parameter_value', hint = 'such as 550e8400-e29b-41d4-a716-446655440000';
    elsif jsonb_typeof(payload -> 'payload_version') not in ('string', 'null') then
        raise exception '$.payload_version must be text' using errcode = 'invalid_parameter_value', hint = 'such as "1.0"';
    end if;
    key := case
        when given_key is not null or coalesce(payload -> 'idempotency_key', 'null') <> 'null' or kind.idempotent is null
            then forge_agreed('idempotency_key', payload -> 'idempotency_key', given_key)
        else forge_idempotency_key(kind.name, kind.idempotent,
                                   case kind.idempotent when 'input' then payload - envelope else payload end)
    end;
    -- long numbers are normal in a key
    if forge_looks_like(key) <> 'a card number' then
        raise exception '$.idempotency_key looks like %', forge_looks_like(key)
            using errcode = 'invalid_parameter_value', hint = 'make the key of ids';
    end if;
    perform forge_check_sensitive(payload - envelope, kind.allow_sensitive);
    return payload || jsonb_build_object(
        'tenant_id', forge_agreed('tenant_id', payload -> 'tenant_id', tenant::text)::bigint,
        'correlation_id', forge_agreed('correlation_id', payload -> 'correlation_id', correlation::text)::uuid,
        'idempotency_key', forge_check_name(key, 'idempotency_key'));
end
$$;
