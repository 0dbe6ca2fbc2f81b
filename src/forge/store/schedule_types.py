"""Statements on forge_schedule_types, one function each."""

from collections.abc import Sequence

from forge.core.job_type import JobType
from forge.store.job_types import first_type
from forge.store.statement import Statement, columns, load, nothing


def register(types: Sequence[JobType]) -> Statement[None]:
    entries = [(t.name, t.priority, t.worker_capability, t.input_schema) for t in types]
    return Statement(load("schedule_types/register"), columns(entries), nothing)


def get(name: str) -> Statement[JobType | None]:
    return Statement(load("schedule_types/get"), (name,), first_type)
