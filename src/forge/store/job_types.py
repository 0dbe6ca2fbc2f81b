"""Statements on forge_job_types, one function each."""

from collections.abc import Sequence

from forge.core.job_type import JobType
from forge.store.statement import Rows, Statement, load, nothing


def register(types: Sequence[JobType]) -> Statement[None]:
    rows = [job_type.as_row() for job_type in types]
    parameters = tuple([row[name] for row in rows] for name in JobType._fields)
    return Statement(load("job_types/register"), parameters, nothing)


def get(name: str) -> Statement[JobType | None]:
    return Statement(load("job_types/get"), (name,), first_type)


def names() -> Statement[list[str]]:
    return Statement(load("job_types/names"), (), lambda found: [row["name"] for row in found])


def listed() -> Statement[list[JobType]]:
    return Statement(load("job_types/list"), (), lambda found: list(map(JobType.from_row, found)))


def first_type(found: Rows) -> JobType | None:
    return JobType.from_row(found[0]) if found else None
