"""The verbs of an app for code without an event loop: scripts, threads, WSGI, Django."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast, overload
from uuid import UUID

from forge.builtin_jobs.job_requests import (
    cancelling,
    deleting,
    moving,
    reprioritising,
    rescheduling,
    running_now,
)
from forge.core.backlog import BacklogItem
from forge.core.bulk import BulkAction
from forge.core.finding import Finding
from forge.core.job import JobRecord, PriorityLike
from forge.core.job_statistics import Group, JobStatistics, StatisticsByType
from forge.core.new_job import DispatchOptions, RequestOptions, When, check_uuid
from forge.core.overview import Overview
from forge.core.pause import Pause
from forge.core.timeline import Timeline
from forge.core.why import Why
from forge.definitions.job import In, JobDefinition, Out
from forge.jobs.bulk import BulkOptions, BulkPlan
from forge.jobs.rerun import RerunOptions
from forge.jobs.search import FoundJobs
from forge.operations.pauses import PausedType
from forge.store.borrowed import without_loop
from forge.store.borrowed.from_loop import FromLoop
from forge.sync.dead_letters import SyncDeadLetters
from forge.sync.handle import SyncHandle
from forge.sync.loop import LoopApp
from forge.sync.schedules import SyncSchedules
from forge.sync.workers import SyncWorkers

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.core.job_content import SearchCriteria
    from forge.core.job_filter import JobCriteria
    from forge.definitions.call import CallDefinition
    from forge.jobs.statistics_reader import StatisticsFilters


class SyncForge:
    """`app.sync`: from any thread that runs no event loop, and on both sides of a fork."""

    def __init__(self, app: "Forge") -> None:
        self._app = app
        self._loop = LoopApp(app)
        self.schedules = SyncSchedules(app, self._loop)
        self.dead_letters = SyncDeadLetters(self._loop)
        self.workers = SyncWorkers(self._loop)

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded PostgreSQL while `app.sync` is open."""
        return self._loop.database_url

    @overload
    def dispatch(
        self,
        job: JobDefinition[In, Out],
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle[Out]: ...
    @overload
    def dispatch(
        self,
        job: str,
        input: Any = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle[Any]: ...
    def dispatch(
        self,
        job: JobDefinition[Any, Any] | str,
        input: Any = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle[Any]:
        """Dispatch one job; with `conn`, in the caller's transaction."""
        if conn is None:
            handle = self._loop.wait(lambda app: app.dispatch(job, input, **options))
            return SyncHandle(self._loop, handle.id, job, deduplicated=handle.deduplicated)
        dispatcher = self._app.dispatcher
        made = without_loop(conn, dispatcher.dispatch_on(conn, job, input, options, notify=notify))
        if not notify:
            self._loop.wake_later()
        return SyncHandle(self._loop, made.id, job, deduplicated=not made.is_new)

    def dispatch_many(
        self,
        job: JobDefinition[In, Any] | str,
        inputs: Iterable[In | dict[str, Any] | None],
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> int:
        """Dispatch one job per input, all or none; return the number of new jobs.

        Inputs may come from a generator, which runs in the calling thread.
        """
        if conn is None:
            app, thread = self._loop.open()
            with thread.entered(app.dispatcher.transaction()) as connection:
                lent = FromLoop(connection, thread.loop)
                work = app.dispatcher.dispatch_many_on(lent, job, inputs, options)
                return without_loop(lent, work)
        work = self._app.dispatcher.dispatch_many_on(conn, job, inputs, options, notify=notify)
        count = without_loop(conn, work)
        if not notify:
            self._loop.wake_later()
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
        """Run a mutation or an action in this process, and return what it returns."""
        who: Any = {"auth": auth, "tenant_id": tenant_id, "correlation_id": correlation_id}
        return self._loop.wait(lambda app: app.call(call, input, **who))

    def get(self, job_id: UUID | str) -> JobRecord:
        """Return the current state of a job."""
        return self._loop.wait(lambda app: app.get(job_id))

    def why(self, job_id: UUID | str) -> Why:
        """Return why a job is not running: a reason, one sentence, and the facts behind it."""
        return self._loop.wait(lambda app: app.why(job_id))

    def timeline(self, job_id: UUID | str) -> Timeline:
        """Return what happened to a job, oldest first, with its log."""
        return self._loop.wait(lambda app: app.timeline(job_id))

    def list_jobs(
        self,
        *,
        limit: int = 50,
        cursor: UUID | str | None = None,
        q: str | None = None,
        input: Mapping[str, object] | None = None,
        **criteria: "Unpack[JobCriteria]",
    ) -> FoundJobs:
        """Return a page of jobs, newest first; `cursor` is the last page's `next_cursor`."""
        return self._loop.wait(
            lambda app: app.list_jobs(limit=limit, cursor=cursor, q=q, input=input, **criteria)
        )

    def handle(self, job_id: UUID | str) -> SyncHandle:
        """Return the handle of a job that was dispatched earlier; its result is plain JSON."""
        return SyncHandle(self._loop, check_uuid(job_id))

    def watch_token(self, job_id: UUID | str) -> str:
        """Return a token with which a browser can follow this one job for an hour."""
        return self._app.watch_token(job_id)

    def cancel(
        self,
        job_id: UUID | str,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle:
        """Ask a worker to cancel a job, in any status."""
        return self.dispatch(*cancelling(job_id, reason), **options)

    def delete(
        self,
        job_id: UUID | str,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle:
        """Ask a worker to give up, cancel or erase a job, depending on its status."""
        return self.dispatch(*deleting(job_id, reason), **options)

    def run_now(
        self,
        job_id: UUID | str,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle:
        """Ask a worker to make a waiting job due at once."""
        return self.dispatch(*running_now(job_id, reason), **options)

    def reschedule(
        self,
        job_id: UUID | str,
        at: When,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> SyncHandle:
        """Ask a worker to give a waiting job another time, or a delay such as "2h"."""
        return self.dispatch(*rescheduling(job_id, at, reason), **options)

    def reprioritise(
        self,
        job_id: UUID | str,
        priority: PriorityLike,
        *,
        reason: str | None = None,
        **options: "Unpack[RequestOptions]",
    ) -> SyncHandle:
        """Ask a worker to give a waiting job another priority."""
        return self.dispatch(
            *reprioritising(job_id, priority, reason), **cast(DispatchOptions, options)
        )

    def move(
        self,
        job_id: UUID | str,
        queue: str,
        *,
        reason: str | None = None,
        **options: "Unpack[RequestOptions]",
    ) -> SyncHandle:
        """Ask a worker to move a waiting job to another queue."""
        return self.dispatch(*moving(job_id, queue, reason), **cast(DispatchOptions, options))

    def bulk(
        self,
        action: BulkAction | str,
        filter: "SearchCriteria | None" = None,
        *,
        ids: Collection[UUID | str] | None = None,
        all: bool = False,
        reason: str,
        actor: str | None = None,
        **options: "Unpack[BulkOptions]",
    ) -> SyncHandle:
        """Have a worker cancel, delete, rerun or move all jobs that match, and the like."""
        which: Any = {"ids": ids, "all": all}
        made = self._loop.wait(
            lambda app: app.bulk(action, filter, reason=reason, actor=actor, **which, **options)
        )
        return SyncHandle(self._loop, made.id)

    def plan_bulk(
        self,
        action: BulkAction | str,
        filter: "SearchCriteria | None" = None,
        *,
        ids: Collection[UUID | str] | None = None,
        all: bool = False,
    ) -> BulkPlan:
        """Return how many jobs `bulk` would act on, and some of them."""
        return self._loop.wait(lambda app: app.plan_bulk(action, filter, ids=ids, all=all))

    def pause(
        self,
        type: PausedType | None = None,
        *,
        queue: str | None = None,
        for_: timedelta | str | None = None,
        until: datetime | None = None,
        reason: str,
        actor: str | None = None,
    ) -> Pause:
        """Start no more jobs of a type, of a queue, or of a type in a queue; what runs goes on."""
        when: Any = {"for_": for_, "until": until}
        return self._loop.wait(
            lambda app: app.pause(type, queue=queue, reason=reason, actor=actor, **when)
        )

    def resume(
        self,
        type: PausedType | None = None,
        *,
        queue: str | None = None,
        pause_id: UUID | str | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Pause:
        """End a pause, by its type and queue or by its id."""
        who: Any = {"reason": reason, "actor": actor}
        return self._loop.wait(lambda app: app.resume(type, queue=queue, pause_id=pause_id, **who))

    def pauses(self) -> list[Pause]:
        """Return the pauses in effect, oldest first."""
        return self._loop.wait(lambda app: app.pauses())

    def statistics(self, **filters: "Unpack[StatisticsFilters]") -> JobStatistics:
        """Return outcomes and percentiles by step: of the last hour, unless a time is given."""
        return self._loop.wait(lambda app: app.statistics(**filters))

    def statistics_by_type(
        self, group: Group = "type_and_queue", **filters: "Unpack[StatisticsFilters]"
    ) -> StatisticsByType:
        """Return the totals of each job type and queue, those with the most jobs first."""
        return self._loop.wait(lambda app: app.statistics_by_type(group, **filters))

    def backlog(self) -> list[BacklogItem]:
        """Return what waits and runs now, by type, queue and capability."""
        return self._loop.wait(lambda app: app.backlog())

    def overview(self) -> Overview:
        """Return the state of the whole system: jobs, workers, and what needs attention."""
        return self._loop.wait(lambda app: app.overview())

    def findings(self, *, include_ok: bool = False) -> list[Finding]:
        """Return what an operator should know, the most severe first."""
        return self._loop.wait(lambda app: app.findings(include_ok=include_ok))

    def rerun(
        self,
        job_id: UUID | str,
        patch: Any = None,
        *,
        reason: str | None = None,
        **options: "Unpack[RerunOptions]",
    ) -> SyncHandle:
        """Run a final job again, as a new job with the same input or one patched by RFC 7396."""
        made = self._loop.wait(lambda app: app.rerun(job_id, patch, reason=reason, **options))
        return SyncHandle(self._loop, made.id)

    def close(self) -> None:
        """Close connections; the next call opens them again."""
        self._loop.close()
