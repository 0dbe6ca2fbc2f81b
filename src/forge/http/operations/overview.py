"""The overview and the findings, for operators."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from forge.core.finding import Severity, most_severe_first
from forge.core.lifecycle import Status
from forge.http.auth.access import OperatingStaff
from forge.http.fields import Items
from forge.http.jobs.shapes import Count
from forge.http.operations.pauses import PauseOut

T = TypeVar("T")
# Seconds that a server repeats its last answer: dashboards poll, and each of them reads tables.
OVERVIEW_AGE = 2.0
FINDINGS_AGE = 10.0

router = APIRouter(tags=["overview"])


class OldestReadyOut(BaseModel):
    """The job that has been due the longest, among those that are not paused."""

    job_id: UUID
    job_type: str
    queue: str
    scheduled_at: datetime
    waiting_seconds: float


class SlotsOut(BaseModel):
    """The slots of the live workers."""

    in_use: int = Field(description="At the last heartbeats.")
    total: int


class WorkersByStateOut(BaseModel):
    """How many workers are in each state."""

    alive: int
    drained: int
    draining: int
    dead: int = Field(description="Without a heartbeat; forgotten after a while.")


class OverviewOut(BaseModel):
    """The state of the whole system."""

    at: datetime
    jobs: dict[Status, Count]
    oldest_ready: OldestReadyOut | None = Field(description="Null: no job is due.")
    slots: SlotsOut
    workers: WorkersByStateOut
    dead_letters_waiting: int = Field(description="Dead letters that wait for review.")
    schedules_failing: Count = Field(description="Enabled schedules whose last run failed.")
    pauses: list[PauseOut]


class FindingOut(BaseModel):
    """Something that an operator should know."""

    code: str
    severity: Severity
    message: str
    action: str | None = Field(description="What to do about it.")
    facts: Annotated[
        dict[str, Any], Field(description="What the message is made of; depends on the code.")
    ]


class Repeated(Generic[T]):
    """Reads once for all callers that come at the same time or shortly after."""

    def __init__(self, read: Callable[[], Awaitable[T]], max_age: float) -> None:
        self._read = read
        self._max_age = max_age
        self._lock = asyncio.Lock()
        self._found: tuple[float, T] | None = None

    async def get(self) -> T:
        async with self._lock:
            if self._found is None or monotonic() - self._found[0] > self._max_age:
                self._found = monotonic(), await self._read()
            return self._found[1]


@router.get("/_api/overview", operation_id="get_overview", response_model=OverviewOut)
async def get_overview(request: Request, caller: OperatingStaff) -> Any:
    """Return counts by status, the oldest ready job, slots, workers and what needs attention.

    A server reads it at most every two seconds.
    """
    return asdict(await _repeated(request, "overview", caller.app.overview, OVERVIEW_AGE).get())


@router.get("/_api/findings", operation_id="list_findings", response_model=Items[FindingOut])
async def list_findings(
    request: Request,
    caller: OperatingStaff,
    include_ok: Annotated[bool, Query(description="Also the checks that passed.")] = False,
) -> Any:
    """List what an operator should know, as `forge doctor` does, the most severe first.

    A server runs the checks at most every ten seconds.
    """
    check = partial(caller.app.findings, include_ok=True)
    checks = await _repeated(request, "findings", check, FINDINGS_AGE).get()
    found = most_severe_first(checks)
    if include_ok:
        found += [check for check in checks if check.severity == "ok"]
    return {"items": [asdict(finding) for finding in found]}


def _repeated(
    request: Request, name: str, read: Callable[[], Awaitable[T]], max_age: float
) -> Repeated[T]:
    """Return what this server keeps under a name."""
    state = request.app.state
    if not hasattr(state, name):
        setattr(state, name, Repeated(read, max_age))
    kept: Repeated[T] = getattr(state, name)
    return kept
