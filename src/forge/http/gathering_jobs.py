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
from forge.http.shapes import JobOut
from forge.store import listing
from forge.store.listing import Used, Wanted
from forge.store.statement import Rows, Statement

Look = Callable[[Wanted, int, Used], Statement[Rows]]
# So many rows at most are asked for at once where some were not shown.
MOST_AT_ONCE = 1000


class Gathered(NamedTuple):
    """Jobs as they are shown, and after which one to go on; None at the end."""

    jobs: list[JobOut]
    last: UUID | None
    stopped_early: bool = False


async def gather(
    caller: Caller, look: Look, wanted: Wanted, limit: int, text: str | None = None
) -> Gathered:
    """Look until there are enough jobs, until the window or the time is over, or to the end.

    The database finds a text in all that is stored, a secret too. A job that holds it only where
    it is redacted is passed over as if it did not, or a secret could be guessed letter by letter.
    """
    jobs: list[JobOut] = []
    size = 0
    ask, used, began = limit + 1, Used(), time.monotonic()
    while True:
        found = await caller.run(look(wanted, ask, used))
        allowed = await allowances(caller.app, (row["job_type"] for row in found))
        for row in found:
            job = _shown(row, allowed[row["job_type"]], text) if row["matches"] else None
            if len(jobs) == limit and (job is not None or row["is_stop"]):
                return Gathered(jobs, jobs[-1].id)
            if job is not None:
                jobs.append(job)
                size += row["size"]
            if row["is_stop"] or size > listing.MOST_BYTES:
                return Gathered(jobs, row["id"], row["is_stop"])
        if len(found) < ask and not (found and found[-1]["is_full"]):
            return Gathered(jobs, None)
        # Some were not shown.
        wanted = wanted._replace(before=found[-1]["id"])
        used = Used(used.rows + found[-1]["place"], time.monotonic() - began)
        ask = min(ask * 2, MOST_AT_ONCE)


def _shown(row: Mapping[str, Any], allowed: Sequence[str], text: str | None) -> JobOut | None:
    """Return a job as it is shown; None where what was found in it is not."""
    job = JobRecord.from_row(row)
    shown = shown_job(job, allowed)
    if text is not None and shown is not job and not _holds(shown, text):
        return None
    return JobOut.of(shown)


def _holds(job: JobRecord, text: str) -> bool:
    told = (json.dumps(job.input, ensure_ascii=False), job.last_error, job.progress_message)
    return any(part is not None and text.casefold() in part.casefold() for part in told)
