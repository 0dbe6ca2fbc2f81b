"""Requests on many dead letters: to reprocess or discard them, and what that would do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple, Self, TypeVar

from pydantic import BaseModel

from forge.core.bulk import check_rate
from forge.core.dead_letter import CAUSES, UNDER_REVIEW, Causes, DeadLetterGroup, LetterFilter
from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue
from forge.core.job import PriorityLike
from forge.core.new_job import parse_priority
from forge.definitions.catalog import RunStatement
from forge.store import dead_letters

# One statement's worth a second: more would keep the acks of ordinary jobs waiting.
HIGHEST_RATE = 1000.0
MAX_CANARIES = 100
MAX_GROUPS = 20

Request = TypeVar("Request", bound="LetterRequest")


class Plan(NamedTuple):
    """What reprocessing would do: the number of dead letters that it takes, by cause."""

    letters: int
    groups: Sequence[DeadLetterGroup]


class LetterRequest(BaseModel):
    """Which dead letters: those under review that match, up to the newest of the request."""

    job_type: str | None = None
    category: str | None = None
    error_class: str | None = None
    fingerprint: str | None = None
    tenant_id: int | None = None
    until: int = 0
    letters: int = 0
    notes: str | None = None

    @property
    def filter(self) -> LetterFilter:
        return LetterFilter(status=UNDER_REVIEW, **self.model_dump(include=set(CAUSES)))


class DiscardRequest(LetterRequest):
    """The input of forge.discard: which dead letters, why, and how fast."""

    notes: str
    rate: float | None = None

    @classmethod
    def checked(cls, causes: Causes, notes: str, rate: float | None) -> Self:
        """Check what is asked for, or say what is allowed."""
        LetterFilter(**causes)  # which refuses what is no category
        return cls(**causes, notes=notes, rate=check_rate(rate))


class ReprocessRequest(LetterRequest):
    """The input of forge.reprocess: which dead letters, how fast, and when to stop."""

    rate: float
    canary: int
    canary_seconds: float
    max_failures: int
    priority: int | None

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
        if not 0 <= canary <= MAX_CANARIES:
            raise InvalidValue(f"canary must be from 0 (none) to {MAX_CANARIES}, not {canary!r}")
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


async def plan(wanted: LetterFilter, run: RunStatement) -> Plan:
    """Count what would be reprocessed, without touching it."""
    counted = await run(dead_letters.count(wanted))
    return Plan(counted.letters, await run(dead_letters.groups(wanted, MAX_GROUPS)))


async def limited_to_known(wanted: Request, run: RunStatement) -> Request:
    """Limit a request to the dead letters that exist now."""
    counted = await run(dead_letters.count(wanted.filter))
    return wanted.model_copy(update={"until": counted.newest, "letters": counted.letters})
