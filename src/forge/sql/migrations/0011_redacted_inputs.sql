-- forge_dispatch refuses inputs with redacted values, which were read from a page or an API and came
-- back: they would replace what they stand for.
create function forge_refuse_redacted(payload jsonb, what text) returns void
    language plpgsql immutable strict parallel safe as $$
declare
    place text;
begin
    if strpos(payload::text, '[redacted]') = 0 then
        return;
    end if;
    with recursive parts as (
        select '$' as path, '' as name, payload as value
        union all
        select parts.path || part.step, part.name, part.value
        from parts
        cross join lateral (
            select '.' || field.key as step, field.key as name, field.value
            from jsonb_each(case when jsonb_typeof(parts.value) = 'object' then parts.value else '{}' end) as field
            union all
            select '[' || (item.place - 1) || ']', '', item.value
            from jsonb_array_elements(case when jsonb_typeof(parts.value) = 'array' then parts.value else '[]' end)
                 with ordinality as item (value, place)
        ) as part
    )
    select path into place
    from parts
    where strpos(name, '[redacted]') > 0
       or jsonb_typeof(value) = 'string' and strpos(value #>> '{}', '[redacted]') > 0
    order by path
    limit 1;
    raise exception '%: % is a redacted value', what, place
        using errcode = 'invalid_parameter_value', hint = 'write the value itself, or leave it out to keep it';
end
$$;
