"""Finds the jobs of a bulk action that contain what was searched for."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from forge.core.job import JobRecord
from forge.core.job_content import JobContent
from forge.core.sensitive.shown import shown_job
from forge.definitions.catalog import RunStatement
from forge.store import bulk
from forge.store.bulk import Chosen
from forge.store.statement import Rows

# Jobs that are compared at once; large inputs make it fewer.
COMPARED = 500


async def compare(content: JobContent, ids: Sequence[UUID], run: RunStatement) -> Chosen[UUID]:
    """Return which of the first jobs match, and the last id that was compared: None for all."""
    found = await run(bulk.contents(ids[:COMPARED]))
    # Redacting may take a second, which would stop every handler of the worker.
    matching = await asyncio.to_thread(_matching, content, found)
    last = found[-1]["id"] if found else ids[min(len(ids), COMPARED) - 1]
    return Chosen(matching, last if last < ids[-1] else None)


async def compare_all(content: JobContent, ids: Sequence[UUID], run: RunStatement) -> set[UUID]:
    """Return which jobs match."""
    matching: set[UUID] = set()
    left = sorted(ids)
    while left:
        compared = await compare(content, left, run)
        matching.update(compared.ids)
        last = compared.last_id
        left = [] if last is None else [job_id for job_id in left if job_id > last]
    return matching


def _matching(content: JobContent, found: Rows) -> list[UUID]:
    """Return the jobs that match as they are shown."""
    return [
        row["id"]
        for row in found
        if content.matches(shown_job(JobRecord.from_row(row), row["allow_sensitive"] or ()))
    ]
