"""Gathering the jobs of a page: as many as are wanted, each as it is shown."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from forge.allowances import allowances
from forge.core.record import JobRecord
from forge.core.shown import shown_job
from forge.http.access import Caller
from forge.http.off_loop import off_loop
from forge.http.shapes import JobOut
from forge.store import listing
from forge.store.listing import UNUSED, Used, Wanted
from forge.store.statement import Rows, Statement

Look = Callable[[Wanted, int, Used], Statement[Rows]]
# Rows per statement, once the first statement did not fill the page.
MOST_AT_ONCE = 1000
# Rows that one page of a search redacts and compares with the text.
MOST_SEARCHED = 2000


class Gathered(NamedTuple):
    """Jobs as they are shown, and after which one to go on; None at the end."""

    jobs: list[JobOut]
    last: UUID | None
    # How much JSON was read for them.
    size: int
    stopped_early: bool = False


async def gather(
    caller: Caller, look: Look, wanted: Wanted, limit: int, text: str | None = None
) -> Gathered:
    """Look until there are enough jobs, until the window or the time is over, or to the end.

    The database never gets the text: it would search stored secrets too, and how long it took or
    how many rows it returned would give them away. Redacted rows are compared instead.
    """
    jobs: list[JobOut] = []
    ask = limit + 1 if text is None else min(limit + 1, MOST_SEARCHED)
    used, began = UNUSED, time.monotonic()
    searched = size = 0
    while True:
        found = await caller.run(look(wanted, ask, used))
        allowed = await allowances(caller.app, (row["job_type"] for row in found))
        shown = await off_loop(sum(row["size"] for row in found), _all_shown, found, allowed, text)
        for row, job in zip(found, shown, strict=True):
            if len(jobs) == limit and (job is not None or row["is_stop"]):
                return Gathered(jobs, jobs[-1].id, size)
            if job is not None:
                jobs.append(job)
            searched += row["matches"]
            size += row["size"]
            if row["is_stop"] or size > listing.MOST_BYTES:
                return Gathered(jobs, row["id"], size, row["is_stop"] or text is not None)
        if len(found) < ask and not (found and found[-1]["is_full"]):
            return Gathered(jobs, None, size)
        seconds = time.monotonic() - began
        if searched >= MOST_SEARCHED or seconds > listing.SECONDS:
            return Gathered(jobs, found[-1]["id"], size, stopped_early=True)
        wanted = wanted._replace(before=found[-1]["id"])
        used = Used(used.rows + found[-1]["place"], seconds)
        ask = min(ask * 2, MOST_AT_ONCE, MOST_SEARCHED - searched)


def _all_shown(
    found: Rows, allowed: Mapping[str, Sequence[str]], text: str | None
) -> list[JobOut | None]:
    return [
        _shown(row, allowed[row["job_type"]], text) if row["matches"] else None for row in found
    ]


def _shown(row: Mapping[str, Any], allowed: Sequence[str], text: str | None) -> JobOut | None:
    """Return a job as it is shown; None where the text is not in what is shown."""
    job = shown_job(JobRecord.from_row(row), allowed)
    return JobOut.of(job) if text is None or _holds(job, text) else None


def _holds(job: JobRecord, text: str) -> bool:
    shown = (json.dumps(job.input, ensure_ascii=False), job.last_error, job.progress_message)
    return any(part is not None and text.casefold() in part.casefold() for part in shown)
