"""The verbs of an app for code without an event loop: scripts, threads, WSGI, Django."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.record import JobRecord
from forge.core.wish import Options, check_uuid
from forge.dead_letters.sync import SyncDeadLetters
from forge.handle import JobHandle
from forge.loop_app import LoopApp
from forge.registry import In, JobDefinition
from forge.requests import cancelling, deleting, rescheduling, running_now
from forge.schedules.sync import SyncSchedules
from forge.store.borrowed import without_loop
from forge.store.borrowed.from_loop import FromLoop
from forge.watch import Timeout

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.calls.definition import CallDefinition


class SyncForge:
    """`app.sync`: from any thread that runs no event loop, and on both sides of a fork."""

    def __init__(self, app: "Forge") -> None:
        self._app = app
        self._elsewhere = LoopApp(app)
        self.schedules = SyncSchedules(app, self._elsewhere)
        self.dead_letters = SyncDeadLetters(self)

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded PostgreSQL while `app.sync` is open."""
        return self._elsewhere.database_url

    def dispatch(
        self,
        job: JobDefinition[In, Any] | str,
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[Options]",
    ) -> "SyncHandle":
        """Ask for one call of a job, in the caller's transaction where `conn` is given."""
        if conn is None:
            handle = self._elsewhere.wait(lambda app: app.dispatch(job, input, **options))
            return SyncHandle(self, handle.id, deduplicated=handle.deduplicated)
        made = without_loop(conn, self._app._one_on(conn, job, input, options, notify))
        if not notify:
            self._elsewhere.wake_later()
        return SyncHandle(self, made.id, deduplicated=not made.is_new)

    def dispatch_many(
        self,
        job: JobDefinition[In, Any] | str,
        inputs: Iterable[In | dict[str, Any] | None],
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[Options]",
    ) -> int:
        """Ask for one call per input: all are dispatched, or none. Returns how many are new.

        Inputs may come from a generator, which runs in the calling thread.
        """
        if conn is None:
            app, thread = self._elsewhere.open()
            with thread.entered(app._transaction()) as connection:
                lent = FromLoop(connection, thread.loop)
                return without_loop(lent, app._many_on(lent, job, inputs, options, False))
        count = without_loop(conn, self._app._many_on(conn, job, inputs, options, notify))
        if not notify:
            self._elsewhere.wake_later()
        return count

    def act_for(
        self, conn: Any, *, tenant_id: int | None = None, auth: dict[str, Any] | None = None
    ) -> None:
        """Act for a tenant until the end of the connection's transaction; None is an operator."""
        without_loop(conn, self._app.act_for(conn, tenant_id=tenant_id, auth=auth))

    def call(
        self,
        call: "CallDefinition[Any, Any] | str",
        input: Any = None,
        *,
        auth: dict[str, Any] | None = None,
        tenant_id: int | None = None,
        correlation_id: UUID | str | None = None,
    ) -> Any:
        """Run a mutation or an action here and now, and return what it returns."""
        who: Any = {"auth": auth, "tenant_id": tenant_id, "correlation_id": correlation_id}
        return self._elsewhere.wait(lambda app: app.call(call, input, **who))

    def get(self, job_id: UUID | str) -> JobRecord:
        """Return a job as it stands now."""
        return self._elsewhere.wait(lambda app: app.get(job_id))

    def handle(self, job_id: UUID | str) -> "SyncHandle":
        """Return the handle of a job that was dispatched earlier."""
        return SyncHandle(self, check_uuid(job_id))

    def cancel(
        self, job_id: UUID | str, *, reason: str | None = None, **options: "Unpack[Options]"
    ) -> "SyncHandle":
        """Ask a worker to cancel a job, wherever it stands."""
        return self.dispatch(*cancelling(job_id, reason), **options)

    def delete(self, job_id: UUID | str, **options: "Unpack[Options]") -> "SyncHandle":
        """Ask a worker to give up, cancel or erase a job, according to where it stands."""
        return self.dispatch(*deleting(job_id), **options)

    def run_now(self, job_id: UUID | str, **options: "Unpack[Options]") -> "SyncHandle":
        """Ask a worker to make a waiting job due at once."""
        return self.dispatch(*running_now(job_id), **options)

    def reschedule(
        self, job_id: UUID | str, at: datetime, **options: "Unpack[Options]"
    ) -> "SyncHandle":
        """Ask a worker to move a waiting job to another time."""
        return self.dispatch(*rescheduling(job_id, at), **options)

    def close(self) -> None:
        """Let go of connections; the next call opens them anew."""
        self._elsewhere.close()


class SyncHandle:
    """One dispatched job, to wait for, follow or cancel without an event loop."""

    __slots__ = ("_sync", "deduplicated", "id")

    def __init__(self, sync: SyncForge, job_id: UUID, *, deduplicated: bool = False) -> None:
        self._sync = sync
        self.id = job_id
        self.deduplicated = deduplicated

    def get(self) -> JobRecord:
        """Return the job as it stands now."""
        return self._sync.get(self.id)

    def updates(self) -> Iterator[JobRecord]:
        """Yield the job as it stands, then at each change, until it is final."""
        app, thread = self._sync._elsewhere.open()
        followed = JobHandle(app, self.id).updates()

        async def following() -> JobRecord | None:
            return await anext(followed, None)

        try:
            while (record := thread.wait(following())) is not None:
                yield record
        finally:
            thread.wait(followed.aclose())

    def result(self, timeout: Timeout = None) -> Any:
        """Wait until the job is final and return its output, or raise JobFailed."""
        return self._sync._elsewhere.wait(lambda app: JobHandle(app, self.id).result(timeout))

    def cancel(self, reason: str | None = None) -> "SyncHandle":
        """Ask a worker to cancel the job; returns the handle of that request."""
        return self._sync.cancel(self.id, reason=reason)

    def __repr__(self) -> str:
        return f"<forge.SyncHandle {self.id}>"
