"""Job types in forge_job_types: what a process writes, every other process reads."""

import re
from datetime import timedelta
from typing import Any

import pytest

from forge import Retry
from forge.core.job_type import BY_FUNCTION, JobType
from forge.store import job_types, schedule_types
from forge.store.connection.database import Database
from forge.store.statement import load
from tests.store.placing import Psql

FULL = JobType(
    name="render",
    queue="films",
    priority=75,
    max_attempts=5,
    timeout=timedelta(minutes=30),
    worker_capability="media",
    category="export",
    requires=("film_id",),
    allow_sensitive=("sync_token", "$.message.body"),
    idempotent="input.id",
    dead_letter=False,
    isolation="process",
    retry=Retry(backoff="linear", max_backoff="10m"),
    input_schema='{"type":"object"}',
    output_schema='{"type":"integer"}',
    description="Render a film.\n\nIn “4K” \N{REPLACEMENT CHARACTER}.",
)


def test_the_fields_are_the_parameters_of_the_register_statement() -> None:
    (named,) = re.findall(r"as type \(([^)]*)\)", load("job_types/register"))

    assert tuple(re.split(r",\s*", named)) == JobType._fields


@pytest.mark.parametrize(
    "job_type", [FULL, JobType("plain"), JobType("bare", requires=())], ids=lambda one: one.name
)
async def test_a_registered_type_is_read_as_it_was_written(
    database: Database, job_type: JobType
) -> None:
    await database.run(job_types.register([job_type]))

    found = await database.run(job_types.get(job_type.name))

    assert found is not None
    assert _without_spaces(found) == job_type
    assert job_type.name in [one.name for one in await database.run(job_types.listed())]


async def test_a_function_that_makes_keys_is_registered_by_its_existence(
    database: Database,
) -> None:
    await database.run(job_types.register([JobType("charge", idempotent=lambda input: "k")]))

    found = await database.run(job_types.get("charge"))

    assert found is not None
    assert found.idempotent == BY_FUNCTION


@pytest.mark.parametrize(
    "retry", ['{"backoff": "fibonacci"}', '{"jitter": 0.5}', '"often"', '{"max_backoff": "soon"}']
)
async def test_a_retry_policy_of_a_newer_version_does_not_hide_its_type(
    database: Database, psql: "Psql[Any]", retry: str
) -> None:
    await database.run(job_types.register([FULL]))
    await psql.execute("update forge_job_types set retry = $1", retry)

    found = await database.run(job_types.get("render"))

    assert found is not None
    assert (found.retry, found.max_attempts) == (None, 5)


async def test_no_types_are_registered_by_an_empty_list(database: Database) -> None:
    await database.run(job_types.register([]))

    assert await database.run(job_types.listed()) == []


async def test_a_schedule_type_keeps_what_its_table_has(database: Database) -> None:
    schedule = JobType("sweep", priority=75, worker_capability="gpu", input_schema="{}")
    await database.run(schedule_types.register([schedule]))

    assert await database.run(schedule_types.get("sweep")) == schedule
    assert await database.run(schedule_types.get("unheard")) is None


def _without_spaces(job_type: JobType) -> JobType:
    # PostgreSQL writes jsonb with a space after colons.
    schemas = (job_type.input_schema, job_type.output_schema)
    plain = [None if schema is None else schema.replace(" ", "") for schema in schemas]
    return job_type._replace(input_schema=plain[0], output_schema=plain[1])
