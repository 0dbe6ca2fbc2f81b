"""What `app.sync.dispatch` returns: a job to wait for, follow or cancel in any thread."""

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Generic
from uuid import UUID

from forge.core.job import JobRecord, PriorityLike
from forge.core.new_job import When
from forge.core.timeline import Timeline
from forge.core.why import Why
from forge.definitions.job import JobDefinition
from forge.jobs.follow import Timeout
from forge.jobs.handle import HandleApp, JobHandle, Out_co
from forge.jobs.rerun import RerunOptions
from forge.sync.loop import LoopApp

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SyncHandle(Generic[Out_co]):
    """One dispatched job, to wait for, follow or cancel without an event loop."""

    __slots__ = ("_job", "_loop", "deduplicated", "id")

    def __init__(
        self,
        loop: LoopApp,
        job_id: UUID,
        job: JobDefinition[Any, Out_co] | str | None = None,
        *,
        deduplicated: bool = False,
    ) -> None:
        self._loop = loop
        self._job = job
        self.id = job_id
        self.deduplicated = deduplicated

    @property
    def app(self) -> HandleApp:
        """The app that dispatched the job."""
        return self._loop.app

    def get(self) -> JobRecord:
        """Return the current state of the job."""
        return self._loop.wait(lambda app: app.get(self.id))

    def updates(self) -> Iterator[JobRecord]:
        """Yield the job as it stands, then at each change, until it is final."""
        app, thread = self._loop.open()
        followed = app.handle(self.id).updates()

        async def following() -> JobRecord | None:
            return await anext(followed, None)

        try:
            while (record := thread.wait(following())) is not None:
                yield record
        finally:
            thread.wait(followed.aclose())

    def result(self, timeout: Timeout = None) -> Out_co:
        """Wait until the job is final and return its output, or raise JobFailed."""
        return self._loop.wait(lambda app: JobHandle(app, self.id, self._job).result(timeout))

    def why(self) -> Why:
        """Return why the job is not running: a reason, one sentence, and the facts behind it."""
        return self._loop.wait(lambda app: app.why(self.id))

    def timeline(self) -> Timeline:
        """Return what happened to the job, oldest first, with its log."""
        return self._loop.wait(lambda app: app.timeline(self.id))

    def watch_token(self) -> str:
        """Return a token with which a browser can follow this job for an hour."""
        return self._loop.app.watch_token(self.id)

    def cancel(self, reason: str | None = None) -> "SyncHandle[Any]":
        """Ask a worker to cancel the job; returns the handle of that request."""
        return self._requested(lambda app: app.cancel(self.id, reason=reason))

    def run_now(self, *, reason: str | None = None) -> "SyncHandle[Any]":
        """Ask a worker to make the waiting job due at once."""
        return self._requested(lambda app: app.run_now(self.id, reason=reason))

    def reschedule(self, at: When, *, reason: str | None = None) -> "SyncHandle[Any]":
        """Ask a worker to give the waiting job another time, or a delay such as "2h"."""
        return self._requested(lambda app: app.reschedule(self.id, at, reason=reason))

    def reprioritise(
        self, priority: PriorityLike, *, reason: str | None = None
    ) -> "SyncHandle[Any]":
        """Ask a worker to give the waiting job another priority."""
        return self._requested(lambda app: app.reprioritise(self.id, priority, reason=reason))

    def move(self, queue: str, *, reason: str | None = None) -> "SyncHandle[Any]":
        """Ask a worker to move the waiting job to another queue."""
        return self._requested(lambda app: app.move(self.id, queue, reason=reason))

    def rerun(
        self, patch: Any = None, *, reason: str | None = None, **options: "Unpack[RerunOptions]"
    ) -> "SyncHandle[Out_co]":
        """Run a final job again, as a new job with the same input or one patched by RFC 7396."""
        made = self._loop.wait(lambda app: app.rerun(self.id, patch, reason=reason, **options))
        return SyncHandle(self._loop, made.id, self._job)

    def _requested(self, ask: Callable[[Any], Coroutine[Any, Any, JobHandle]]) -> "SyncHandle[Any]":
        request = self._loop.wait(ask)
        return SyncHandle(self._loop, request.id, deduplicated=request.deduplicated)

    def __repr__(self) -> str:
        return f"<forge.SyncHandle {self.id}>"
