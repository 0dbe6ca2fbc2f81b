"""Reads the timeline of a job."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from forge.core.errors import UnknownJob
from forge.core.job import JobRecord
from forge.core.payload import decode_if_possible
from forge.core.sensitive.redact import redact, secrets_in
from forge.core.sensitive.shown import shown_attempt, shown_event, shown_job
from forge.core.timeline import (
    MAX_ATTEMPTS,
    MAX_EVENTS,
    MAX_LINES,
    MAX_TRACES,
    History,
    Timeline,
    make_timeline,
)
from forge.definitions.catalog import Catalog, RunStatement
from forge.store import attempt_logs, audit, jobs
from forge.store.audit import AuditFilter


async def read_timeline(
    job_id: UUID, catalog: Catalog, run: RunStatement, *, with_audit: bool = True
) -> Timeline:
    """Read what happened to a job; secrets are redacted."""
    found = await run(jobs.get([job_id]))
    if not found:
        raise UnknownJob.of(job_id)
    attempts = await run(jobs.latest_attempts(job_id, MAX_ATTEMPTS + 1, MAX_TRACES))
    lines = await run(attempt_logs.of_job(job_id, MAX_LINES + 1))
    events: list[dict[str, Any]] = []
    if with_audit:
        wanted = AuditFilter(job_id=job_id)
        events = (await run(audit.listed(wanted, None, MAX_EVENTS + 1))).items
    record = JobRecord.from_row(found[0])
    allowed = await catalog.sensitive_allowed(record.job_type)
    known = secrets_in(record.input, allowed)
    return make_timeline(
        History(
            shown_job(record, allowed),
            [shown_attempt(row, record.input, allowed) for row in attempts],
            [_shown_line(row, known) for row in lines],
            [shown_event(event) for event in events],
        )
    )


def _shown_line(row: Mapping[str, Any], known: Sequence[str] | set[str]) -> dict[str, Any]:
    shown = dict(row) | {"fields": decode_if_possible(row["fields"])}
    return shown | {name: redact(shown[name], known) for name in ("message", "fields")}
