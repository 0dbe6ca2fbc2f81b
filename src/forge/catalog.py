"""The types a process may dispatch: those whose code it has, and those it knows by name."""

import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from forge.core.errors import InvalidValue, UnknownJobType
from forge.core.schema import input_check
from forge.core.suggestion import did_you_mean
from forge.core.wish import check_name
from forge.job_type import JobType
from forge.lookout import Lookout
from forge.registry import JobDefinition
from forge.schedules.definition import ScheduleDefinition
from forge.store import job_types, schedule_types
from forge.store.job_types import KnownType
from forge.store.statement import Statement

T = TypeVar("T")
# How long what forge_job_types says of a type is believed: a deploy may change it.
KNOWN_FOR = 60.0


class Ask(Protocol):
    """Runs a statement where the job is to be dispatched."""

    def __call__(self, statement: Statement[T], /) -> Awaitable[T]: ...


class Catalog:
    """Finds types, and remembers for a while what the database said of them."""

    def __init__(
        self, definitions: Mapping[str, JobDefinition[Any, Any]], limit: int, lookout: Lookout
    ) -> None:
        self._definitions = definitions
        self._lookout = lookout
        self._limit = limit
        self._known: dict[str, tuple[JobType, float]] = {}

    async def find(self, job: JobDefinition[Any, Any] | str, ask: Ask) -> JobType:
        """Return a type, asking the database for one whose code lives elsewhere."""
        if isinstance(job, ScheduleDefinition):
            raise job.not_a_job()
        if isinstance(job, JobDefinition):
            return JobType(job.defaults, job, self._limit, None, self._lookout)
        if not isinstance(job, str):
            raise InvalidValue(
                f"dispatch takes a job or its name, not {type(job).__name__}; make it a job with "
                "@app.job"
            )
        if (definition := self._definitions.get(job)) is not None:
            return JobType(definition.defaults, definition, self._limit, None, self._lookout)
        if job.startswith("forge."):
            raise UnknownJobType(f"{job} is one of Forge's own; call app.cancel(…) and the like")
        known, until = self._known.get(job, (None, 0.0))
        if known is not None and time.monotonic() < until:
            return known
        found = await ask(job_types.get(check_name(job, what="job")))
        if found is None:
            raise _unknown(job, {*self._definitions, *await ask(job_types.names())})
        return self._remember(job, found)

    async def find_schedule(
        self, name: str, definition: ScheduleDefinition[Any] | None, ask: Ask
    ) -> JobType:
        """Return the rules for the payloads of a type of schedules, known here or registered."""
        if definition is not None:
            return JobType(definition.defaults, definition, self._limit, None, self._lookout)
        if (found := await ask(schedule_types.get(name))) is None:
            raise UnknownJobType(
                f"unknown schedule type {name!r}",
                "start a worker that has it, or run `forge migrate --app module:app`",
            )
        check = input_check(name, found.input_schema)
        return JobType(found.defaults, None, self._limit, check, self._lookout)

    def _remember(self, name: str, found: KnownType) -> JobType:
        check = input_check(name, found.input_schema)
        kind = JobType(found.defaults, None, self._limit, check, self._lookout)
        self._known[name] = (kind, time.monotonic() + KNOWN_FOR)
        return kind


def _unknown(name: str, known: Iterable[str]) -> UnknownJobType:
    return UnknownJobType(
        f"unknown job type {name!r}{did_you_mean(name, known)}",
        "start a worker that has it, or run `forge migrate --app module:app`",
    )
