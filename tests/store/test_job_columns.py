"""Every place that lists columns of forge_jobs has what core/job_columns.py says.

A failure here names the file to edit: CONTRIBUTING.md, "A column", has the whole list.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import pytest
from tools.job_columns import ROOT, job_column_files

from forge import JobContext
from forge.cli.dispatch import dispatch
from forge.core.job import Job, JobRecord
from forge.core.job_columns import CLAIMED_AS, JOB_COLUMNS, OPTIONS
from forge.core.new_job import DispatchOptions, NewJob
from forge.http.jobs.shapes import DispatchBody, DispatchIn, JobOut
from forge.store.connection.database import Database
from forge.store.roles import grant_roles

IN_DATABASE = """
    select attname, format_type(atttypid, atttypmod)
    from pg_attribute
    where attrelid = 'forge_jobs'::regclass and attnum > 0 and not attisdropped
    order by attnum
"""
GRANTED = """
    select column_name from information_schema.column_privileges
    where grantee = 'forge_api' and privilege_type = 'INSERT' and table_name = 'forge_jobs'
"""


@pytest.mark.parametrize("path", job_column_files())
def test_generated_lists_are_current(path: str) -> None:
    current = (ROOT / path).read_text() == job_column_files()[path]()

    assert current, f"{path} is not what core/job_columns.py generates; run `make format`"


async def test_the_table_has_these_columns(psql: Any) -> None:
    found = await psql.fetch(IN_DATABASE)

    names = [name for name, _ in found]
    must_agree("a migration in sql/migrations", names, [c.name for c in JOB_COLUMNS])
    assert names == [column.name for column in JOB_COLUMNS], (
        "core/job_columns.py lists the columns in another order than the table; a new one is last"
    )
    for (name, in_database), column in zip(found, JOB_COLUMNS, strict=True):
        assert _short(in_database) == column.type, f"core/job_columns.py: the type of {name}"


async def test_forge_api_can_insert_these_columns(database: Database, psql: Any) -> None:
    await grant_roles(database)

    found = [name for (name,) in await psql.fetch(GRANTED)]

    must_agree("roles/2_api.sql", found, [c.name for c in JOB_COLUMNS if c.is_granted])


async def test_sql_has_these_arguments(database: Database, psql: Any) -> None:
    found = await psql.fetchval("select proargnames from pg_proc where proname = 'forge_dispatch'")

    arguments = [name for name in found if name not in ("job_type", "input", "notify")]
    must_agree("functions/dispatch.sql", arguments, [n for n, o in OPTIONS.items() if o.sql])


def test_python_has_these_options() -> None:
    must_agree("DispatchOptions in core/new_job.py", DispatchOptions.__annotations__, OPTIONS)


def test_a_new_job_has_these_fields() -> None:
    shared = [column.name for column in JOB_COLUMNS if column.is_shared]

    must_agree("NewJob in core/new_job.py", NewJob._fields, [*shared, "delay"])


def test_http_has_these_options() -> None:
    options = [name for name, option in OPTIONS.items() if option.http]

    must_agree("DispatchIn in http/jobs/shapes.py", DispatchIn.model_fields, [*options, "args"])
    must_agree(
        "DispatchBody in http/jobs/shapes.py",
        DispatchBody.model_fields,
        [name for name in options if name != "idempotency_key"],
    )


def test_the_command_line_has_these_options() -> None:
    others = {"job_type", "input_text", "watch", "as_json", "traceback", "app_option"}
    found = {parameter.name for parameter in dispatch.params} - others - {"config_path"}

    must_agree("cli/dispatch.py", found, [n for n, o in OPTIONS.items() if o.cli is not None])


def test_a_claimed_job_has_these_fields() -> None:
    claimed = [CLAIMED_AS.get(c.name, c.name) for c in JOB_COLUMNS if c.is_claimed]

    names = [expression.split(" as ")[-1] for expression in claimed]
    must_agree("Job in core/job.py", Job._fields, names)


def test_a_handler_reads_these() -> None:
    wanted = [column.name for column in JOB_COLUMNS if column.reaches == "handler"]

    must_agree("JobContext in jobs/context.py", {*dir(JobContext)} & {*wanted}, wanted)


@pytest.mark.parametrize("record", [JobRecord, JobOut])
def test_a_job_is_shown_with_these_fields(record: type) -> None:
    shown = [field.name for field in fields(record) if field.name != "undecodable"]

    must_agree("JobRecord in core/job.py", shown, [column.name for column in JOB_COLUMNS])


def must_agree(where: str, found: Iterable[str | None], wanted: Iterable[str]) -> None:
    """Compare names with those of core/job_columns.py, and say what to do where they differ."""
    has, needs = {*found}, {*wanted}
    assert needs <= has, f"{where} lacks {sorted(needs - has)}, which core/job_columns.py has"
    assert has <= needs, (
        f"{where} has {sorted(map(str, has - needs))}; add it to core/job_columns.py"
    )


def _short(type_: str) -> str:
    type_ = type_.replace("timestamp with time zone", "timestamptz")
    return type_.replace("character varying", "varchar")
