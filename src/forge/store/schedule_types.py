"""Statements on forge_schedule_types, one function each."""

from collections.abc import Sequence
from typing import NamedTuple

from forge.core.payload import encode
from forge.core.wish import TypeDefaults
from forge.store.job_types import KnownType
from forge.store.statement import Rows, Statement, columns, load, nothing


class ScheduleTypeRow(NamedTuple):
    """A type of schedules, in the order of schedule_types/register's parameters."""

    name: str
    priority: int
    worker_capability: str | None
    input_schema: str | None


def register(types: Sequence[ScheduleTypeRow]) -> Statement[None]:
    return Statement(load("schedule_types/register"), columns(types), nothing)


def get(name: str) -> Statement[KnownType | None]:
    return Statement(load("schedule_types/get"), (name,), _known)


def _known(found: Rows) -> KnownType | None:
    if not found:
        return None
    row = found[0]
    schema = row["input_schema"]
    # Drivers differ: some hand out jsonb as text, some as what it means.
    text = schema if schema is None or isinstance(schema, str) else encode(schema, what="a schema")
    defaults = TypeDefaults(
        row["name"], priority=row["priority"], worker_capability=row["worker_capability"]
    )
    return KnownType(defaults, text)
