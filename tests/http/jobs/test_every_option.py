"""Every option of dispatch, by every way to dispatch: stored, claimed, shown and reprocessed.

The options and columns are those of core/job_columns.py, so that a new column is tested, too.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from forge import Forge, JobContext, JobFailed
from forge.core.job_columns import COLUMNS, JOB_COLUMNS, OPTIONS
from forge.core.new_job import NewJob
from forge.store import job_types, jobs
from forge.store.connection.database import Database
from forge.store.ids import new_id
from forge.store.roles import grant_roles
from tests.apps import Work
from tests.cli.command import Project
from tests.http.conftest import MakeToken

LATER = datetime(2140, 1, 2, 3, 4, 5, tzinfo=UTC)
STARTED = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
EXAMPLES: dict[str, Any] = {
    "integer": 75,
    "bigint": 7,
    "uuid": uuid4(),
    "timestamptz": LATER,
    "jsonb": {"name": "ann", "roles": [], "tenant_id": 7},
    "text[]": ["a", "b"],
}
# What a job that reprocesses a dead letter has of its own. Any other option keeps its value.
RENEWED = {"scheduled_at", "expires_at", "idempotency_key", "retry_of", "parent_id", "meta"}
PYTHON = set(OPTIONS)
HTTP = {name for name, option in OPTIONS.items() if option.http}
SQL = {name for name, option in OPTIONS.items() if option.sql}
CLI = {name for name, option in OPTIONS.items() if option.cli is not None}
INPUT = {"n": 1}


def examples(names: set[str]) -> dict[str, Any]:
    """Return a value for each of these options but `delay`, which has no column."""
    values = {name: EXAMPLES.get(COLUMNS[name].type, f"some {name}") for name in names - {"delay"}}
    return values | ({"scheduled_at": STARTED} if "scheduled_at" in names else {})


@pytest.fixture(autouse=True)
async def contexts(app: Forge, database: Database) -> list[JobContext]:
    """The contexts of the handlers that have run; each of them has failed."""
    seen: list[JobContext] = []

    @app.job(max_attempts=1)
    async def run(ctx: JobContext, input: dict[str, Any]) -> None:
        seen.append(ctx)
        raise ValueError("never works")

    app.job(name="keyed", idempotent="input.n")(run.handler)
    app.job(name="ruled", category="export")(run.handler)
    await database.run(
        job_types.register([definition.job_type for definition in app.definitions.values()])
    )
    return seen


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    conn = await asyncpg.connect(database_url)
    yield conn
    await conn.close()


async def test_python_stores_every_option(app: Forge, psql: Any) -> None:
    await app.dispatch("run", INPUT, **examples(PYTHON))

    await must_have(psql, PYTHON)


async def test_python_stores_every_option_of_a_job_without_a_key(app: Forge, psql: Any) -> None:
    await app.dispatch("run", INPUT, **examples(PYTHON - {"idempotency_key"}))

    await must_have(psql, PYTHON - {"idempotency_key"})


async def test_python_stores_every_option_of_a_job_with_a_category(app: Forge, psql: Any) -> None:
    await app.dispatch("ruled", INPUT, **examples(PYTHON))

    await must_have(psql, PYTHON)


@pytest.mark.parametrize("name", ["run", "keyed"])
async def test_dispatch_many_stores_every_option(app: Forge, psql: Any, name: str) -> None:
    await app.dispatch_many(name, [INPUT], **examples(PYTHON - {"idempotency_key"}))

    await must_have(psql, PYTHON - {"idempotency_key"})


async def test_dispatch_many_stores_every_option_where_copy_is_not_allowed(
    app: Forge, database: Database, psql: Any, conn: Any
) -> None:
    await grant_roles(database)

    async with conn.transaction():
        # COPY FROM is not supported where row security applies to the role.
        await conn.execute("set local role forge_worker")
        await app.dispatch_many("run", [INPUT], conn=conn, **examples(PYTHON - {"idempotency_key"}))

    await must_have(psql, PYTHON - {"idempotency_key"})


async def test_an_insert_that_requests_share_stores_its_options(
    database: Database, psql: Any
) -> None:
    names = {name for name in PYTHON - {"delay"} if COLUMNS[name].is_batched}
    options = as_text(examples(names))
    new_job = NewJob(job_type="run", max_attempts=1, worker_capability=None, **options)

    await database.run(jobs.dispatch_each([(new_id(), "{}", new_job)]))

    assert jobs.fits_each(new_job)
    await must_have(psql, names)


async def test_sql_stores_every_option(psql: Any, conn: Any) -> None:
    given = as_text(examples(SQL)) | {"priority": "high"}
    arguments = ", ".join(f"{name} => ${place}" for place, name in enumerate(given, 1))

    await conn.execute(f"select forge_dispatch('run', '{{}}', {arguments})", *given.values())

    await must_have(psql, SQL)


async def test_http_stores_every_option(
    http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    body = {"args": INPUT, **as_json(examples(HTTP))}

    answer = await http.post("/_api/jobs/run/dispatch", json=body, headers=token("staff"))

    assert answer.status_code == 202, answer.text
    await must_have(psql, HTTP)


async def test_http_stores_every_option_of_many(
    http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    body = {"inputs": [INPUT], **as_json(examples(HTTP - {"idempotency_key"}))}

    answer = await http.post("/_api/jobs/run/dispatch_many", json=body, headers=token("staff"))

    assert answer.status_code == 202, answer.text
    await must_have(psql, HTTP - {"idempotency_key"})


async def test_the_command_line_stores_every_option(psql: Any, database_url: str) -> None:
    flags = [
        part
        for name, value in examples(CLI).items()
        for each in (value if isinstance(value, list) else [value])
        for part in ("--" + name.replace("_", "-").replace("tags", "tag"), str(each))
    ]

    ended = Project(database_url).forge("dispatch", "run", '{"n": 1}', *flags)

    assert ended.returncode == 0, ended.stderr
    await must_have(psql, CLI)


async def test_every_option_reaches_the_handler_and_survives_reprocessing(
    app: Forge, work: Work, contexts: list[JobContext], psql: Any
) -> None:
    handle = await app.dispatch("run", INPUT, **examples(PYTHON))
    await work(app)
    with pytest.raises(JobFailed):
        await handle.result(30)
    (letter,) = (await app.dead_letters.list(limit=1)).items

    made = await app.dead_letters.reprocess(letter.dlq_id)

    reached = [c.name for c in JOB_COLUMNS if c.option is not None and c.reaches == "handler"]
    assert {name: getattr(contexts[0], name) for name in reached} == examples({*reached})
    await must_have(psql, PYTHON - RENEWED, made.new_job_id)


async def test_every_column_is_shown(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, database_url: str
) -> None:
    handle = await app.dispatch("run", INPUT, **examples(PYTHON))

    answer = await http.get(f"/_api/jobs/{handle.id}", headers=token("user"))
    shown = Project(database_url).json("jobs", "show", str(handle.id))

    assert answer.json().keys() == COLUMNS.keys() | {"state", "undecodable"}
    assert shown.keys() >= COLUMNS.keys()
    for name, value in as_json(examples(PYTHON)).items():
        assert answer.json()[name] == value, name


async def must_have(psql: Any, names: set[str], job_id: UUID | None = None) -> None:
    """Check that the newest job has the value of each of these options in its column."""
    row = await psql.fetchrow(
        "select * from forge_jobs where id = coalesce($1, id) order by id desc limit 1", job_id
    )
    wanted = examples(names)
    found = {name: _read(name, row[name]) for name in wanted}
    missing = sorted(name for name in wanted if found[name] != wanted[name])
    assert missing == [], f"lost {missing}: {found}; see CONTRIBUTING.md, 'A column'"


def as_text(values: dict[str, Any]) -> dict[str, Any]:
    """Return what the database takes: JSON as text."""
    return {n: json.dumps(v) if isinstance(v, dict) else v for n, v in values.items()}


def as_json(values: dict[str, Any]) -> Any:
    """Return what HTTP takes and returns."""
    return {
        name: f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else _plain(value)
        for name, value in values.items()
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _read(name: str, value: Any) -> Any:
    is_json = COLUMNS[name].type == "jsonb" and isinstance(value, str)
    return json.loads(value) if is_json else value
