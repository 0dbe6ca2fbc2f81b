"""The job types that a process can dispatch: its own, and those registered in the database."""

import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from forge.core.errors import InvalidValue, UndecodablePayload, UnknownJobType
from forge.core.job_type import JobType
from forge.core.new_job import check_name
from forge.core.suggestion import did_you_mean
from forge.definitions.input_encoder import InputEncoder, schema_check
from forge.definitions.job import JobDefinition
from forge.definitions.payload_warnings import PayloadWarnings
from forge.definitions.schedule import ScheduleDefinition
from forge.store import job_types, schedule_types
from forge.store.statement import Statement

T = TypeVar("T")
# Seconds for which a type read from forge_job_types is cached: a deploy may change it.
KNOWN_FOR = 60.0


class RunStatement(Protocol):
    """Runs a statement on the connection that will dispatch the job."""

    def __call__(self, statement: Statement[T], /) -> Awaitable[T]: ...


class Catalog:
    """Returns the input encoder of a job type, and caches those read from the database."""

    def __init__(
        self,
        definitions: Mapping[str, JobDefinition[Any, Any]],
        limit: int,
        payload_warnings: PayloadWarnings,
        run: RunStatement,
    ) -> None:
        self._definitions = definitions
        self._payload_warnings = payload_warnings
        self._limit = limit
        self._run = run
        self._known: dict[str, tuple[InputEncoder, float]] = {}

    async def find(
        self, job: JobDefinition[Any, Any] | str, run: RunStatement | None = None
    ) -> InputEncoder:
        """Return the encoder of a job; reads the type from the database if its code is not here.

        `run` runs the statements instead of the app's own connections.
        """
        if isinstance(job, ScheduleDefinition):
            raise job.not_a_job()
        if isinstance(job, JobDefinition):
            return self._by_definition(job)
        if not isinstance(job, str):
            raise InvalidValue(
                f"dispatch takes a job or its name, not {type(job).__name__}; make it a job with "
                "@app.job"
            )
        if (definition := self._definitions.get(job)) is not None:
            return self._by_definition(definition)
        if job.startswith("forge."):
            raise UnknownJobType(f"{job} is one of Forge's own; call app.cancel(…) and the like")
        known, until = self._known.get(job, (None, 0.0))
        if known is not None and time.monotonic() < until:
            return known
        run = run or self._run
        found = await run(job_types.get(check_name(job, what="job")))
        if found is None:
            raise _unknown(job, {*self._definitions, *await run(job_types.names())})
        encoder = self._by_schema(found)
        self._known[job] = (encoder, time.monotonic() + KNOWN_FOR)
        return encoder

    async def find_schedule(
        self, name: str, definition: ScheduleDefinition[Any] | None, run: RunStatement
    ) -> InputEncoder:
        """Return the encoder for the payloads of a schedule type."""
        if definition is not None:
            return self._by_definition(definition)
        if (found := await run(schedule_types.get(name))) is None:
            raise UnknownJobType(
                f"unknown schedule type {name!r}",
                "start a worker that has it, or run `forge migrate --app module:app`",
            )
        return self._by_schema(found)

    def _by_definition(self, definition: JobDefinition[Any, Any]) -> InputEncoder:
        return InputEncoder(
            definition.job_type, definition, self._limit, None, self._payload_warnings
        )

    def _by_schema(self, job_type: JobType) -> InputEncoder:
        check = schema_check(job_type.name, job_type.input_schema)
        return InputEncoder(job_type, None, self._limit, check, self._payload_warnings)

    async def sensitive_allowed(self, job_type: str) -> tuple[str, ...]:
        """Return the `allow_sensitive` of a type; an unknown or invalid type allows nothing."""
        try:
            return (await self.find(job_type)).job_type.allow_sensitive
        except (UnknownJobType, InvalidValue, UndecodablePayload):
            return ()

    async def sensitive_allowed_by_type(
        self, job_types: Iterable[str]
    ) -> dict[str, tuple[str, ...]]:
        """Return the `allow_sensitive` of types by name."""
        return {name: await self.sensitive_allowed(name) for name in set(job_types)}


def _unknown(name: str, known: Iterable[str]) -> UnknownJobType:
    return UnknownJobType(
        f"unknown job type {name!r}{did_you_mean(name, known)}",
        "start a worker that has it, or run `forge migrate --app module:app`",
    )
