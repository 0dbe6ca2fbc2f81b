"""The handle that dispatch returns: wait for the job, follow it, cancel it."""

from collections.abc import AsyncGenerator
from typing import Any, Generic, Protocol
from uuid import UUID

import typing_extensions

from forge.core.errors import JobFailed, UndecodablePayload
from forge.core.job import JobRecord, PriorityLike
from forge.core.lifecycle import Status
from forge.core.new_job import When
from forge.core.timeline import Timeline
from forge.core.why import Why
from forge.definitions.job import JobDefinition
from forge.jobs.follow import Timeout, Watcher
from forge.jobs.rerun import RerunOptions

# What `result()` returns: the return type of the handler, or plain JSON for a job known by name.
Out_co = typing_extensions.TypeVar("Out_co", covariant=True, default=Any)


class HandleApp(Protocol):
    """What a handle needs of its app."""

    async def get(self, job_id: UUID | str) -> JobRecord: ...

    async def watcher(self) -> Watcher: ...

    async def why(self, job_id: UUID | str) -> Why: ...

    async def timeline(self, job_id: UUID | str) -> Timeline: ...

    def watch_token(self, job_id: UUID | str) -> str: ...

    async def cancel(
        self, job_id: UUID | str, *, reason: str | None = None
    ) -> "JobHandle[Any]": ...

    async def run_now(
        self, job_id: UUID | str, *, reason: str | None = None
    ) -> "JobHandle[Any]": ...

    async def reschedule(
        self, job_id: UUID | str, at: When, *, reason: str | None = None
    ) -> "JobHandle[Any]": ...

    async def reprioritise(
        self, job_id: UUID | str, priority: PriorityLike, *, reason: str | None = None
    ) -> "JobHandle[Any]": ...

    async def move(
        self, job_id: UUID | str, queue: str, *, reason: str | None = None
    ) -> "JobHandle[Any]": ...

    async def rerun(
        self,
        job_id: UUID | str,
        patch: Any = None,
        *,
        reason: str | None = None,
        **options: typing_extensions.Unpack[RerunOptions],
    ) -> "JobHandle[Any]": ...


class JobHandle(Generic[Out_co]):
    """One dispatched job, whose result is of the handler's return type.

    A handle made from a definition decodes the result; one made from a name or an id alone
    returns plain JSON.
    """

    __slots__ = ("_app", "_definition", "deduplicated", "id")

    def __init__(
        self,
        app: HandleApp,
        job_id: UUID,
        job: JobDefinition[Any, Out_co] | str | None = None,
        *,
        deduplicated: bool = False,
    ) -> None:
        self._app = app
        self._definition = job if isinstance(job, JobDefinition) else None
        self.id = job_id
        self.deduplicated = deduplicated

    @property
    def app(self) -> HandleApp:
        """The app that dispatched the job."""
        return self._app

    async def get(self) -> JobRecord:
        """Return the current state of the job."""
        return await self._app.get(self.id)

    async def updates(self) -> AsyncGenerator[JobRecord, None]:
        """Yield the current state of the job, then every change, until it is final."""
        watcher = await self._app.watcher()
        async for record in watcher.follow(self.id):
            yield record

    async def result(self, timeout: Timeout = None) -> Out_co:
        """Wait until the job is final and return its output, or raise JobFailed.

        An output that no longer fits the handler's return type raises UndecodablePayload.
        """
        watcher = await self._app.watcher()
        record = await watcher.final(self.id, timeout)
        if "output" in record.undecodable:
            raise UndecodablePayload(
                f"the output of {record.job_type} {self.id} cannot be read as JSON; "
                "read it in SQL and correct it where it was written"
            )
        if record.status is Status.COMPLETED:
            if self._definition is None:
                output: Out_co = record.output
                return output
            what = f"the output of {record.job_type} {self.id}"
            return self._definition.decode_output(record.output, what=what)
        reason = record.last_error or "no error was recorded"
        raise JobFailed(
            f"{record.job_type} {self.id} ended as {record.status}: {reason}; "
            f"see `forge jobs show {self.id}`"
        )

    async def why(self) -> Why:
        """Return why the job is not running: a reason, one sentence, and the facts behind it."""
        return await self._app.why(self.id)

    async def timeline(self) -> Timeline:
        """Return what happened to the job, oldest first, with its log."""
        return await self._app.timeline(self.id)

    def watch_token(self) -> str:
        """Return a token with which a browser can follow this job for an hour."""
        return self._app.watch_token(self.id)

    async def cancel(self, reason: str | None = None) -> "JobHandle[Any]":
        """Ask a worker to cancel the job; returns the handle of that request."""
        return await self._app.cancel(self.id, reason=reason)

    async def run_now(self, *, reason: str | None = None) -> "JobHandle[Any]":
        """Ask a worker to make the waiting job due at once."""
        return await self._app.run_now(self.id, reason=reason)

    async def reschedule(self, at: When, *, reason: str | None = None) -> "JobHandle[Any]":
        """Ask a worker to give the waiting job another time, or a delay such as "2h"."""
        return await self._app.reschedule(self.id, at, reason=reason)

    async def reprioritise(
        self, priority: PriorityLike, *, reason: str | None = None
    ) -> "JobHandle[Any]":
        """Ask a worker to give the waiting job another priority."""
        return await self._app.reprioritise(self.id, priority, reason=reason)

    async def move(self, queue: str, *, reason: str | None = None) -> "JobHandle[Any]":
        """Ask a worker to move the waiting job to another queue."""
        return await self._app.move(self.id, queue, reason=reason)

    async def rerun(
        self,
        patch: Any = None,
        *,
        reason: str | None = None,
        **options: typing_extensions.Unpack[RerunOptions],
    ) -> "JobHandle[Out_co]":
        """Run a final job again, as a new job with the same input or one patched by RFC 7396."""
        made = await self._app.rerun(self.id, patch, reason=reason, **options)
        return JobHandle(self._app, made.id, self._definition)

    def __repr__(self) -> str:
        return f"<forge.JobHandle {self.id}>"
