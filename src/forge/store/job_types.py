"""What is asked of forge_job_types."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from forge.core.payload import encode
from forge.core.wish import TypeDefaults
from forge.store.statement import Row, Rows, Statement, load, nothing, rows


class JobTypeRow(NamedTuple):
    """A type as every process knows it, in the order of job_types/register's parameters."""

    name: str
    queue: str
    priority: int
    max_attempts: int
    timeout: timedelta
    worker_capability: str | None
    category: str | None
    requires: str | None
    allow_sensitive: str
    idempotent: str | None
    dead_letter: bool
    isolation: str
    retry: str | None
    input_schema: str | None
    output_schema: str | None


class KnownType(NamedTuple):
    """What a process without the code of a type knows of it."""

    defaults: TypeDefaults
    input_schema: str | None


def register(types: Sequence[JobTypeRow]) -> Statement[None]:
    columns = tuple([row[place] for row in types] for place in range(len(JobTypeRow._fields)))
    return Statement(load("job_types/register"), columns, nothing)


def get(name: str) -> Statement[KnownType | None]:
    return Statement(load("job_types/get"), (name,), _known)


def names() -> Statement[list[str]]:
    return Statement(load("job_types/names"), (), lambda found: [row["name"] for row in found])


def listed() -> Statement[Rows]:
    return Statement(load("job_types/list"), (), rows)


def _known(found: Rows) -> KnownType | None:
    if not found:
        return None
    row = found[0]
    schema = row["input_schema"]
    # Drivers differ: some hand out jsonb as text, some as what it means.
    text = schema if schema is None or isinstance(schema, str) else encode(schema, what="a schema")
    return KnownType(_defaults(row), text)


def _defaults(row: Row) -> TypeDefaults:
    return TypeDefaults(
        name=row["name"],
        queue=row["queue"],
        priority=row["priority"],
        max_attempts=row["max_attempts"],
        worker_capability=row["worker_capability"],
        category=row["category"],
        requires=None if row["requires"] is None else tuple(row["requires"]),
        idempotent=row["idempotent"],
        allow_sensitive=tuple(row["allow_sensitive"]),
    )
