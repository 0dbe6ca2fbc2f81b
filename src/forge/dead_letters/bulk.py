"""Reprocessing many dead letters: what is asked for, what it would do, and the job that does it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pydantic import BaseModel

from forge.core.dead_letter import CAUSES, UNDER_REVIEW, Causes, DeadLetterGroup, LetterFilter
from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue
from forge.core.job import PriorityLike
from forge.core.payload import encode
from forge.core.wish import Options, parse_priority
from forge.store import audit, dead_letters
from forge.store.statement import Statement

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.handle import JobHandle

Run = Callable[[Statement[Any]], Awaitable[Any]]
# One statement's worth a second: more would keep the acks of ordinary jobs waiting.
HIGHEST_RATE = 1000.0
MOST_CANARIES = 100
MOST_GROUPS = 20


class Plan(NamedTuple):
    """What reprocessing would do: to how many dead letters, and of which causes."""

    letters: int
    groups: Sequence[DeadLetterGroup]


class Wanted(BaseModel):
    """The input of forge.reprocess: which dead letters, how fast, and when to stop."""

    job_type: str | None = None
    category: str | None = None
    error_class: str | None = None
    fingerprint: str | None = None
    tenant_id: int | None = None
    notes: str | None = None
    rate: float
    canary: int
    canary_seconds: float
    max_failures: int
    priority: int | None
    until: int = 0
    letters: int = 0

    @classmethod
    def checked(
        cls,
        causes: Causes,
        notes: str | None,
        rate: float,
        canary: int,
        canary_timeout: timedelta | str,
        max_failures: int,
        priority: PriorityLike | None,
    ) -> Self:
        """Check what is asked for, or say what is allowed."""
        LetterFilter(**causes)  # which refuses what is no category
        if not 0 < rate <= HIGHEST_RATE:
            raise InvalidValue(f"rate must be above 0 and at most {HIGHEST_RATE:g} a second")
        if not 0 <= canary <= MOST_CANARIES:
            raise InvalidValue(f"canary must be from 0 (none) to {MOST_CANARIES}, not {canary!r}")
        if max_failures < 1:
            raise InvalidValue(f"max_failures must be 1 or more, not {max_failures!r}")
        seconds = parse_duration(canary_timeout, what="canary_timeout").total_seconds()
        return cls(
            **causes,
            notes=notes,
            rate=rate,
            canary=canary,
            canary_seconds=seconds,
            max_failures=max_failures,
            priority=None if priority is None else parse_priority(priority),
        )

    @property
    def filter(self) -> LetterFilter:
        return LetterFilter(status=UNDER_REVIEW, **self.model_dump(include=set(CAUSES)))


async def plan(wanted: LetterFilter, run: Run) -> Plan:
    """Count what would be reprocessed, without touching it."""
    counted = await run(dead_letters.count(wanted))
    return Plan(counted.letters, await run(dead_letters.groups(wanted, MOST_GROUPS)))


async def request(app: "Forge", wanted: Wanted, actor: str | None, run: Run) -> "JobHandle":
    """Write the request into the audit, then ask a worker; what fails from now on is not meant."""
    from forge.dead_letters.reprocessing import reprocess

    counted = await run(dead_letters.count(wanted.filter))
    asked = wanted.model_copy(update={"until": counted.newest, "letters": counted.letters})
    detail = encode(asked.model_dump(exclude_none=True))
    event = "job_dlq_bulk_reprocess_requested"
    await run(audit.add(event, actor, wanted.tenant_id, None, wanted.notes, detail))
    options: Options = {"auth": {"actor": actor}}
    if wanted.tenant_id is not None:
        options["tenant_id"] = wanted.tenant_id
    return await app.dispatch(reprocess, asked.model_dump(), **options)
