"""A caller's own objects never run as the owner of Forge's tables, whatever they are named."""

from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from tests.security.logins import STRANGER

ROLES = [STRANGER, "forge_api", "forge_worker"]

# Records which role runs the attacker's code; the session keeps the setting.
PAYLOAD = """
create function pg_temp.record() returns boolean language plpgsql as $$
begin
    perform set_config('attack.ran_as', current_user, false);
    return true;
end
$$;
create function pg_temp.record_row() returns trigger language plpgsql as $$
begin
    perform pg_temp.record();
    return new;
end
$$;
"""

ESTIMATES = {
    "view": """
        create temporary view pg_stats as
        select nspname as schemaname, 'forge_jobs'::name as tablename, 'status'::name as attname,
               0.5::real as null_frac, array['x']::text as most_common_vals,
               array[case when pg_temp.record() then 0.5 end]::real[] as most_common_freqs
        from pg_namespace;
        grant select on pg_temp.pg_stats to public""",
    "domain": "create domain pg_temp.text as pg_catalog.text check (pg_temp.record())",
    "cast": """
        create type pg_temp.word as enum ('status', 'category', 'job_type', 'error_class');
        create function pg_temp.spell(pg_temp.word) returns text language plpgsql as $$
        begin
            perform pg_temp.record();
            return 'status';
        end
        $$;
        create cast (pg_temp.word as text) with function pg_temp.spell;
        create temporary table pg_stats as
        select 'public'::name as schemaname, 'forge_jobs'::name as tablename,
               'status'::pg_temp.word as attname, 0.5::real as null_frac,
               '{x}'::text as most_common_vals, '{0.5}'::real[] as most_common_freqs;
        grant select on pg_temp.pg_stats to public""",
    "operator": """
        create function public.times(real, bigint) returns double precision language plpgsql as $$
        begin
            perform set_config('attack.ran_as', current_user, false);
            return 1;
        end
        $$;
        create operator public.* (leftarg = real, rightarg = bigint, function = public.times)""",
}

COUNTS = {
    "trigger": """
        create temporary table forge_dead_letter_counts (like public.forge_dead_letter_counts);
        create trigger record before insert on pg_temp.forge_dead_letter_counts
            for each row execute function pg_temp.record_row();
        grant insert on pg_temp.forge_dead_letter_counts to public""",
    "function": """
        create temporary table forge_dead_letter_counts (like public.forge_dead_letter_counts);
        alter table pg_temp.forge_dead_letter_counts add spy boolean default pg_temp.record();
        grant insert on pg_temp.forge_dead_letter_counts to public""",
    "view": """
        create temporary view forge_dead_letter_counts as
        select * from public.forge_dead_letter_counts;
        create trigger record instead of insert on pg_temp.forge_dead_letter_counts
            for each row execute function pg_temp.record_row();
        grant insert on pg_temp.forge_dead_letter_counts to public""",
}

KEYS = {
    "table": """
        create temporary table forge_idempotency_keys (like public.forge_idempotency_keys);
        alter table pg_temp.forge_idempotency_keys add spy boolean default pg_temp.record();
        grant all on pg_temp.forge_idempotency_keys to public""",
    "operator": """
        create function public.same(varchar, varchar) returns boolean language plpgsql as $$
        begin
            perform set_config('attack.ran_as', current_user, false);
            return true;
        end
        $$;
        create operator public.= (leftarg = varchar, rightarg = varchar, function = public.same)""",
    "function": """
        create function public.unnest(uuid[]) returns setof uuid language plpgsql as $$
        begin
            perform set_config('attack.ran_as', current_user, false);
        end
        $$""",
}


@pytest.mark.parametrize("attacker", ROLES, indirect=True)
@pytest.mark.parametrize("trap", ESTIMATES)
async def test_estimates_do_not_run_the_callers_code_as_their_owner(
    attacker: Any, psql: Any, trap: str
) -> None:
    await psql.execute("grant create on schema public to public")
    await attacker.execute(PAYLOAD + ESTIMATES[trap])
    role = await attacker.fetchval("select current_user")

    names = set()
    with suppress(asyncpg.InsufficientPrivilegeError):
        found = await attacker.fetch("select * from forge_job_estimates()")
        names = {row["name"] for row in found}

    assert await ran_as(attacker) in (None, role)
    assert names == (
        set() if role == STRANGER else {"status", "job_type", "category", "error_class"}
    )


@pytest.mark.parametrize("attacker", ["forge_api", "forge_worker"], indirect=True)
@pytest.mark.parametrize("trap", COUNTS)
async def test_counting_dead_letters_does_not_run_the_callers_code_as_its_owner(
    attacker: Any, psql: Any, trap: str
) -> None:
    await attacker.execute(PAYLOAD + COUNTS[trap])
    counts = "select sum(letters) from forge_dead_letter_counts where status = 'discarded'"

    await attacker.execute("update forge_dead_letters set status = 'discarded'")

    assert await ran_as(attacker) is None
    assert await psql.fetchval(counts) == 2


@pytest.mark.parametrize("attacker", ["forge_api"], indirect=True)
@pytest.mark.parametrize("trap", KEYS)
async def test_taking_keys_does_not_run_the_callers_code_as_its_owner(
    attacker: Any, psql: Any, trap: str
) -> None:
    await psql.execute("grant create on schema public to public")
    await attacker.execute(PAYLOAD + KEYS[trap])

    await attacker.fetch("select forge_take_keys('{1}', '{a}', array[forge_uuidv7()])")
    await attacker.execute(
        "insert into public.forge_jobs (job_type, tenant_id, idempotency_key) values ('x', 1, 'b')"
    )

    assert await ran_as(attacker) is None
    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 2


async def ran_as(conn: Any) -> str | None:
    found: str | None = await conn.fetchval("select current_setting('attack.ran_as', true)")
    return found
