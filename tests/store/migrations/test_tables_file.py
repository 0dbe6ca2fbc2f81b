"""sql/tables.sql has the tables that the migrations create."""

import re
from typing import Any

from forge.store.statement import load

COLUMNS = """
    select relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
           pg_get_expr(adbin, adrelid)
    from pg_attribute
    join pg_class on pg_class.oid = attrelid and relkind = 'r' and relnamespace = $1::regnamespace
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attnum > 0
    order by 1, 2
"""
CONSTRAINTS = """
    select relname, conname, pg_get_constraintdef(pg_constraint.oid)
    from pg_constraint
    join pg_class on pg_class.oid = conrelid and relnamespace = $1::regnamespace
    order by 1, 2
"""


async def test_tables_sql_creates_the_same_columns_and_constraints(psql: Any) -> None:
    await psql.execute("create schema written; set search_path = written, public")

    await psql.execute(load("tables"))

    for facts in (COLUMNS, CONSTRAINTS):
        assert await psql.fetch(facts, "written") == await psql.fetch(facts, "public")


def test_jobs_are_the_first_table_of_both_files() -> None:
    for name in ("tables", "schema"):
        first = re.search(r"^create (.*)$", load(name), re.MULTILINE | re.IGNORECASE)
        assert first is not None
        assert first[1].lower().replace("public.", "") == "table forge_jobs (", name


def test_tables_sql_contains_only_tables() -> None:
    statements = load("tables").split(";\n")

    assert all("\ncreate table " in statement for statement in statements[:-1])
    assert not statements[-1].strip()
