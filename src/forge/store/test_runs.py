"""Statements of the testing kit: what it moves, and what it waits for."""

from datetime import timedelta
from uuid import UUID

from forge.store.statement import Rows, Statement, ids, load, nothing, rows


def retry_now(job_id: UUID | None = None) -> Statement[list[UUID]]:
    return Statement(load("testing/retry_now"), (job_id,), ids)


def held(worker: UUID) -> Statement[Rows]:
    return Statement(load("testing/held"), (worker,), rows)


def advance(span: timedelta) -> Statement[None]:
    return Statement(load("testing/advance"), (span,), nothing)
