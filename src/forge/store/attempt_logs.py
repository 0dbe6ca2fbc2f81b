"""Statements on forge_attempt_logs, one function each."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from forge.core.attempt_log import LogLine
from forge.store.statement import Rows, Statement, columns, ids, load, rows


class AttemptLines(NamedTuple):
    """Lines of one attempt."""

    id: UUID
    lease: int
    lines: Sequence[LogLine]


def add(entries: Sequence[AttemptLines], now: float) -> Statement[list[UUID]]:
    """Store lines; `now` is on the clock of their moments."""
    lines = [
        (
            entry.id,
            entry.lease,
            line.kind,
            line.slot,
            line.number,
            max(0.0, now - line.moment),
            line.level,
            line.message,
            line.fields,
            line.percent,
        )
        for entry in entries
        for line in entry.lines
    ]
    attempts = [(entry.id, entry.lease) for entry in entries]
    return Statement(load("attempt_logs/add"), (*columns(attempts), *columns(lines)), ids)


def of_job(job_id: UUID, limit: int) -> Statement[Rows]:
    return Statement(load("attempt_logs/of_job"), (job_id, limit), rows)
