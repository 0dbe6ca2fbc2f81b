"""Every function of Forge in the catalog: its search path, its owner, and who may call it."""

from typing import Any

import asyncpg

from forge.store.connection.database import Database
from forge.store.migrate import as_sql
from forge.store.roles import ROLES

SAFE_PATH = "search_path=pg_catalog, {schema}, pg_temp"

FUNCTIONS = """
select proc.oid::regprocedure::text as name, proc.prosecdef as is_definer,
       proc.provolatile = 'v' and proc.prosqlbody is null as reads_tables_by_name,
       proc.proowner::regrole::text as owner, coalesce(proc.proconfig, '{}') as settings,
       array(select case grantee when 0 then 'public' else grantee::regrole::text end
             from aclexplode(coalesce(proc.proacl, acldefault('f', proc.proowner)))
             where privilege_type = 'EXECUTE') as callers
from pg_proc as proc
where proc.pronamespace = $1::regnamespace
  and not exists (select from pg_depend
                  where classid = 'pg_proc'::regclass and objid = proc.oid and deptype = 'e')
order by 1
"""

# What PostgreSQL calls with the rights of the current user while it serves a statement on a table:
# column defaults, index expressions, policies and the WHEN of triggers. The functions of triggers
# need no right. A role that may delete may update as well.
CALLED = """
with part (classid, objid, relation, events) as (
    select 'pg_attrdef'::regclass, oid, adrelid, 'INSERT' from pg_attrdef
    union all
    select 'pg_class'::regclass, indexrelid, indrelid, 'INSERT, UPDATE' from pg_index
    union all
    select 'pg_constraint'::regclass, oid, conrelid, 'INSERT, UPDATE' from pg_constraint
    union all
    select 'pg_policy'::regclass, oid, polrelid, 'SELECT, INSERT' from pg_policy
    union all
    select 'pg_trigger'::regclass, oid, tgrelid,
           concat_ws(', ', case when tgtype & 4 > 0 then 'INSERT' end,
                     case when tgtype & 24 > 0 then 'UPDATE' end)
    from pg_trigger
)
select distinct part.relation::regclass::text as relation, part.events,
       depend.refobjid::regprocedure::text as called,
       array(select role from unnest($1::text[]) as role
             where has_any_column_privilege(role, part.relation, part.events)
               and not has_function_privilege(role, depend.refobjid, 'EXECUTE')) as refused
from part
join pg_depend as depend on depend.classid = part.classid and depend.objid = part.objid
                        and depend.refclassid = 'pg_proc'::regclass
left join pg_trigger as own on part.classid = 'pg_trigger'::regclass and own.oid = part.objid
where own.tgfoid is distinct from depend.refobjid
order by 1, 2, 3
"""


async def test_functions_that_run_as_their_owner_search_the_catalog_first(
    granted: Database, psql: Any
) -> None:
    functions = await psql.fetch(FUNCTIONS, "public")
    owner = await psql.fetchval(
        "select relowner::regrole::text from pg_class where relname = 'forge_jobs'"
    )

    definers = [function for function in functions if function["is_definer"]]

    assert len(definers) >= 2
    for function in definers:
        assert SAFE_PATH.format(schema="public") in function["settings"], function["name"]
        assert function["owner"] == owner, function["name"]
        assert set(function["callers"]) <= {owner, *ROLES}, function["name"]


async def test_functions_that_name_tables_do_not_depend_on_the_callers_path(
    granted: Database, psql: Any
) -> None:
    for function in await psql.fetch(FUNCTIONS, "public"):
        if function["reads_tables_by_name"]:
            assert SAFE_PATH.format(schema="public") in function["settings"], function["name"]


async def test_public_may_call_no_function(granted: Database, psql: Any) -> None:
    functions = await psql.fetch(FUNCTIONS, "public")

    assert len(functions) > 20
    assert [row["name"] for row in functions if "public" in row["callers"]] == []


async def test_the_roles_may_call_what_their_statements_on_tables_call(
    granted: Database, psql: Any
) -> None:
    found = await psql.fetch(CALLED, list(ROLES))

    assert {row["called"].partition("(")[0] for row in found} >= {
        "forge_uuidv7",
        "forge_lane",
        "forge_current_tenant",
        "forge_forbids_move",
    }
    assert [tuple(row) for row in found if row["refused"]] == []


async def test_the_path_names_the_schema_that_was_migrated(empty_url: str) -> None:
    conn = await asyncpg.connect(empty_url)
    await conn.execute('create schema "Forge jobs"; set search_path = "Forge jobs"')

    await conn.execute(as_sql())

    functions = await conn.fetch(FUNCTIONS, '"Forge jobs"')
    definers = [function for function in functions if function["is_definer"]]
    assert len(definers) >= 2
    for function in definers:
        assert SAFE_PATH.format(schema='"Forge jobs"') in function["settings"], function["name"]
    assert [row["name"] for row in functions if "public" in row["callers"]] == []
    await conn.close()
