-- Dispatch from SQL, for triggers and other languages, and the rules for payloads of a category: what
-- they carry, and what they must not hold.

alter table forge_job_types add column allow_sensitive text[] not null default '{}';

-- The version that a payload has in itself, where it has one.
create function forge_payload_version(payload jsonb) returns text
    language sql immutable parallel safe
    return case when jsonb_typeof(payload -> 'payload_version') = 'string' then payload ->> 'payload_version' end;

-- One value that was given as an argument, in the payload, or in both: then they must agree.
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
            using errcode = 'invalid_parameter_value', hint = format('give %s =>, or put it into the payload', what);
    end if;
    return coalesce(said, outside);
end
$$;

-- The words of a name, split where they begin: at signs, at humps, at digits.
create function forge_words(name text) returns text[]
    language sql immutable strict parallel safe
    return array(
        select lower(word[1])
        from regexp_matches(
            regexp_replace(normalize(left(name, 200), nfkc), '[\u00ad\u200b-\u200f\u2060\ufeff]', '', 'g'),
            '[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\u0001-\u007f]+|\d+', 'g') as word);

-- Whether a network gives out cards with such numbers, and the check digit is right.
create function forge_is_card(digits text) returns boolean
    language sql immutable strict parallel safe
    return case when digits ~ '^(4(\d{12}|\d{15}|\d{18})|(5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(6011|65\d\d|64[4-9]\d)\d{12,15}|35(2[89]|[3-8]\d)\d{12,15}|62\d{14,17})$'
                then (select sum(digit::integer * (2 - place % 2) / 10 + digit::integer * (2 - place % 2) % 10) % 10 = 0
                      from regexp_split_to_table(reverse(digits), '') with ordinality as sign (digit, place))
                else false end;

-- What a text looks like if that does not belong in a job; null for what is clean.
create function forge_looks_like(value text) returns text
    language plpgsql immutable strict parallel safe as $$
declare
    head text;
    header text[];
begin
    -- Most texts hold nothing that any shape needs: one regular expression in place of a dozen.
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
            -- two kinds of headers: who sent it, to whom, about what and when
            and (head ~* '(?w)^(from|sender|reply-to|return-path|received|delivered-to|message-id):[ \t]*[^ \t\r\n]')::integer
              + (head ~* '(?w)^(to|cc|bcc):[^\r\n]*@')::integer
              + (head ~* '(?w)^(subject|date):[ \t]*[^ \t\r\n]')::integer > 1 then 'an embedded mail'
        when length(head) > 512 and head ~ '^[\w+/=-]+(\r?\n[\w+/=-]+)*\s*$' and head ~ '[^[:alpha:]]'
            then 'an embedded file in base64'
        when length(value) > 1000 then 'an embedded text of more than 1,000 characters'
    end;
end
$$;

-- Whether a last word makes the name one of an id or of a figure, not of what it may look like.
create function forge_refers(word text) returns boolean
    language sql immutable parallel safe
    return word in ('id', 'ids', 'ref', 'refs', 'reference', 'uuid', 'name', 'type', 'kind', 'version', 'count', 'counts',
                    'limit', 'size', 'length', 'usage', 'ttl', 'at', 'on', 'until', 'expiry', 'expires', 'status', 'policy',
                    'hint', 'url', 'uri', 'path');

-- Whether what lies under this name is an id or a figure, not what it may look like.
create function forge_is_reference(name text) returns boolean
    language sql immutable strict parallel safe
    return (select forge_refers(words[cardinality(words)]) from forge_words(name) as words);

-- Whether a name may be one of a secret or of a body: most hold none of their words in any spelling.
create function forge_may_tell(name text) returns boolean
    language sql immutable parallel safe
    return octet_length(name) <> length(name)
        or regexp_replace(lower(left(name, 200)), '[^a-z0-9]', '', 'g')
           ~ 'passw|passphrase|passcode|secret|apikey|authorization|credential|privatekey|accesskey|encryptionkey|signingkey|creditcard|cardnum|socialsecurity|bankaccount|passportnumber|cookie|token|pwd|jwt|bearer|ssn|cvv|cvc|pin|otp|iban|body|content|doc|attachment|letter|transcript|html|markdown|mail|message|text|file|plain|raw';

-- Whether what lies under this name is secret: it is named so, and is not empty or a figure.
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

-- What a name means where it stands, as level + 10 * inside. The level says what makes a text under
-- it content: 1 a letter, 2 prose, 3 a text that is no reference, 4 any text. Inside says what the
-- names above (the argument) and this one (the result) say of the names within: 1 a document, 2 a body.
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

-- Whether a text under a name of this level is content, not a reference to it.
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
    -- a URL, a media type, the name of a file, an address, a label with a number
    return said !~* '^([a-z][a-z0-9+.-]*://[^ \t\r\n<>]+|[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[^ \t\r\n]+)?|[^\r\n<>]+\.(pdf|docx?|xlsx?|pptx?|txt|csv|html?|md|rtf|od[tsp]|png|jpe?g|gif|tiff?|zip|eml|msg|xml|json)|[^\r\n<>@]*<[^ \t\r\n<>@]+@[^ \t\r\n<>@]+>|[a-z]+[ #.-]{1,3}(no\.? ?)?[0-9][a-z0-9./-]*)$';
end
$$;

-- Refuses a payload that holds something sensitive, by its name or by its looks, and says where but
-- never what. Under an allowed name or path nothing is looked at.
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
                       -- {"name": "Authorization", "value": "…"}: headers and forms as lists of pairs
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
                        select case when parts.place >= 10 or forge_may_tell(meant)
                                    then forge_content_place(meant, parts.place / 10, parts.value ?| '{subject,Subject}')
                                    else 0 end as place) as standing
                     cross join lateral (
                        select case
                            when name_shape is not null then '["…"]'
                            when length(key) <= 60 and key ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || key
                            else format('[%s]', to_json(left(key, 60))) end as shown) as told
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
    select parts.path, told.what into found
    from parts
         cross join lateral (
            select coalesce(
                'has a name that looks like ' || name_shape,
                case when forge_may_tell(coalesce(alias, name)) and forge_is_secret(coalesce(alias, name), value)
                     then 'has the name of a secret' end,
                case when place % 10 > 0 and jsonb_typeof(value) = 'string' and forge_is_content(value #>> '{}', place % 10)
                     then case when name is null then 'is part' else 'has the name' end
                          || ' of an embedded body or document' end,
                case when jsonb_typeof(value) = 'string' then 'looks like ' || forge_looks_like(value #>> '{}')
                     when jsonb_typeof(value) = 'number' and length(value #>> '{}') >= 13 and forge_is_card(value #>> '{}')
                          and forge_is_reference(name) is not true then 'looks like a card number' end) as what) as told
    where told.what is not null
    limit 1;
    if found.path is not null then
        raise exception '% %', found.path, found.what
            using errcode = 'invalid_parameter_value',
                  hint = 'store it elsewhere and pass a reference, or allow it with allow_sensitive';
    end if;
end
$$;

-- The primary objects of a category: a payload names at least one of them, or another by its id.
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

-- Whether a payload has a field, and not an empty one.
create function forge_has(payload jsonb, name text) returns boolean
    language sql immutable strict parallel safe
    return coalesce(case jsonb_typeof(payload -> name)
                        when 'string' then btrim(payload ->> name, E' \t\r\n') <> ''
                        else payload -> name not in ('null', '[]', '{}') end, false);

-- Refuses a payload without the fields that its type requires, or without a reference of its category.
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

-- A payload of a category with its tenant, its correlation id and its key in it, or an error that
-- says what it lacks.
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
    -- a key may well contain long numbers
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

-- -> pending: one job, in the caller's transaction and with the caller's rights.
-- Returns the id of the job, or of the one that its idempotency key stands for already.
create function forge_dispatch(
    job_type text,
    input jsonb default '{}',
    priority text default null,
    scheduled_at timestamptz default null,
    delay interval default null,
    idempotency_key text default null,
    tenant_id bigint default null,
    correlation_id uuid default null,
    payload_version text default null,
    queue text default null,
    tags text[] default null,
    expires_at timestamptz default null,
    auth jsonb default null,
    meta jsonb default null,
    -- a notification makes commits wait for each other, so it is sent only when asked for
    notify boolean default false
) returns uuid language plpgsql as $$
#variable_conflict use_column
declare
    wish jsonb := coalesce(forge_dispatch.input, '{}');
    tenant bigint := forge_dispatch.tenant_id;
    correlation uuid := forge_dispatch.correlation_id;
    version text;
    kind forge_job_types;
    key text;
    job_id uuid := forge_uuidv7();
    known_id uuid;
begin
    select * into kind from forge_job_types where name = forge_dispatch.job_type;
    if starts_with(forge_dispatch.job_type, 'forge.') then
        raise exception '% is one of Forge''s own', forge_dispatch.job_type
            using errcode = 'insufficient_privilege', hint = 'ask through the API or the library: cancel, delete, run_now';
    elsif kind.name is null then
        raise exception 'unknown job type %', coalesce(quote_literal(forge_dispatch.job_type), 'null')
            using errcode = 'undefined_object',
                  hint = 'start a worker that has it, or run `forge migrate --app module:app`';
    elsif forge_dispatch.scheduled_at is not null and forge_dispatch.delay is not null then
        raise exception 'a job has either scheduled_at or delay, not both'
            using errcode = 'invalid_parameter_value', hint = 'leave one out';
    elsif forge_dispatch.delay not between '0' and '36500 days' then
        raise exception 'delay % is not a time to wait', forge_dispatch.delay
            using errcode = 'invalid_parameter_value', hint = 'use zero or more, up to 36500 days';
    end if;
    perform forge_check_json(wish, 'the input of ' || kind.name);
    perform forge_check_json(forge_dispatch.auth, 'auth');
    perform forge_check_json(forge_dispatch.meta, 'meta');
    perform forge_check_name(tag, 'a tag') from unnest(forge_dispatch.tags) as tag;

    perform forge_check_references(kind, wish);
    version := coalesce(forge_payload_version(wish), forge_dispatch.payload_version, '1.0');
    if version <> forge_dispatch.payload_version then
        raise exception '$.payload_version in the payload and the argument payload_version differ'
            using errcode = 'invalid_parameter_value', hint = 'leave one of them out';
    elsif length(forge_check_name(version, 'payload_version')) > 32 then
        raise exception '$.payload_version must be text of 1 to 32 characters'
            using errcode = 'invalid_parameter_value', hint = 'such as "1.0"';
    end if;
    if kind.category is not null then
        wish := forge_ruled_payload(kind, wish, tenant, correlation, forge_dispatch.idempotency_key);
        tenant := wish ->> 'tenant_id';
        correlation := wish ->> 'correlation_id';
        key := wish ->> 'idempotency_key';
    elsif forge_dispatch.idempotency_key is null then
        key := forge_idempotency_key(kind.name, kind.idempotent, wish);
    else
        key := forge_check_name(forge_dispatch.idempotency_key, 'idempotency_key');
    end if;
    if octet_length(wish::text) > 10240 then
        raise warning 'the payload of % is larger than 10,240 bytes', kind.name
            using hint = 'store the content elsewhere and pass a reference';
    end if;
    if key is not null then
        select taken.job_id into known_id
        from forge_take_keys(array[tenant], array[key], array[job_id]) as taken;
        if known_id <> job_id then
            raise notice 'deduplicated: idempotency key % stands for job % already', key, known_id;
            return known_id;
        end if;
    end if;

    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, scheduled_at,
         queue, tenant_id, category, correlation_id, payload_version, auth, expires_at, tags, meta)
    values (
        job_id, kind.name, wish,
        coalesce(forge_check_priority(forge_dispatch.priority), kind.priority),
        kind.max_attempts, kind.worker_capability, key,
        coalesce(forge_check_moment(forge_dispatch.scheduled_at, 'scheduled_at'), now())
            + coalesce(forge_dispatch.delay, '0'),
        forge_check_name(coalesce(forge_dispatch.queue, kind.queue), 'queue'),
        tenant, kind.category, correlation, version, forge_dispatch.auth,
        forge_check_moment(forge_dispatch.expires_at, 'expires_at'), forge_dispatch.tags, forge_dispatch.meta);
    if forge_dispatch.notify then
        perform pg_notify('forge_wake', '');
    end if;
    return job_id;
end
$$;
