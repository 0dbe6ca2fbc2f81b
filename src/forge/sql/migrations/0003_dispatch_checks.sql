-- What dispatch from SQL checks, by the rules that Python has; forge_dispatch itself comes with the
-- payload rules.

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
        raise exception 'priority % is none of the five', quote_literal(value)
            using errcode = 'invalid_parameter_value',
                  hint = 'use critical (100), high (75), normal (50), low (25) or background (0)';
    end if;
    return found;
end
$$;

-- Refuses JSON that Python cannot read or does not store: too long, nested too deeply, or with a number
-- of too many digits. NUL characters are refused by jsonb itself.
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
        nested := replace(nested, '[]', '');  -- takes the innermost level away
    end loop;
    if nested <> '' then
        raise exception '% is nested deeper than 64 levels', what
            using errcode = 'program_limit_exceeded', hint = 'flatten it';
    elsif exists (select from regexp_matches(bare, '([0-9]+)(\.[0-9]+)?', 'g') as number
                  where length(number[1]) > case when number[2] is null then 4300 else 308 end) then
        raise exception '% has a number of too many digits', what
            using errcode = 'numeric_value_out_of_range',
                  hint = 'pass it as text; a whole number may have 4300 digits, one with a fraction 308 before the point';
    end if;
end
$$;

-- The key that a type's own rule gives a job: of the whole input, or of what lies at a path in it.
-- It bears the type's name, so that two types may use the same payment.
create function forge_idempotency_key(job_type text, idempotent text, input jsonb) returns text
    language plpgsql immutable parallel safe as $$
declare
    found jsonb := input;
    step text;
begin
    if idempotent is null then
        return null;
    elsif idempotent = 'input' then
        return job_type || ':' || md5(input::text);
    elsif idempotent = 'function' then
        raise exception 'the idempotency key of % is made by a function that only its own code has', job_type
            using errcode = 'invalid_parameter_value', hint = 'give idempotency_key =>';
    end if;
    foreach step in array (string_to_array(idempotent, '.'))[2:] loop
        found := found -> step;
    end loop;
    if coalesce(jsonb_typeof(found), 'null') in ('null', 'object', 'array') then
        raise exception '% needs % for its idempotency key, and the input has no value there',
            job_type, idempotent
            using errcode = 'invalid_parameter_value',
                  hint = 'put it into the input, or give idempotency_key =>';
    end if;
    return forge_check_name(job_type || ':' || (found #>> '{}'), 'the idempotency key');
end
$$;
