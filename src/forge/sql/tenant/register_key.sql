-- Make this the key that callers are signed with; the previous one stays valid.
-- $1 the key padded for the inner hash, $2 for the outer one.
insert into forge_signing_keys as known (is_current, inner_pad, outer_pad)
select true, $1::bytea, $2::bytea
union all
select false, inner_pad, outer_pad from forge_signing_keys where is_current and inner_pad <> $1
on conflict (is_current) do update
set inner_pad = excluded.inner_pad, outer_pad = excluded.outer_pad, created_at = now()
where known.inner_pad <> excluded.inner_pad;
