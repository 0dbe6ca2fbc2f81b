"""The app of a Django project: its dispatches join the current transaction."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.core.signals import setting_changed

from forge.app import Forge
from forge.config.settings import Config
from forge.core.job import BUILTIN_QUEUE
from forge.definitions.job import JobDefinition
from forge.integrations.django.database import database_url, joined_transaction
from forge.integrations.django.settings import NAME, forge_config
from forge.integrations.django.tenants import current_tenant
from forge.integrations.django.wake import wake_on_commit
from forge.jobs.handle import JobHandle
from forge.store.borrowed import without_loop
from forge.sync.app import SyncForge
from forge.sync.handle import SyncHandle

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.core.new_job import DispatchOptions

Job = JobDefinition[Any, Any] | str


class DjangoForge(Forge):
    """An app on one of DATABASES.

    A dispatch without `conn=` uses Django's connection of the calling thread: in
    `transaction.atomic` the job exists if and only if the block commits, elsewhere at once.
    """

    def _configure(self, config: Config, url: str | None) -> None:
        super()._configure(config, url)
        if self._sessions.configured_url is None:
            # Read at each use: the test runner renames the database.
            self._sessions.configured_url = database_url

    @cached_property
    def sync(self) -> SyncForge:
        """The same verbs for code without an event loop."""
        return DjangoSyncForge(self)

    async def dispatch(
        self,
        job: Any,
        input: Any = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> Any:
        """Dispatch one job as `app.sync.dispatch` does, in the thread of Django's connections."""
        if conn is not None:
            return await super().dispatch(job, input, conn=conn, notify=notify, **options)
        made = await sync_to_async(self.sync.dispatch)(job, input, **options)
        return JobHandle(self, made.id, job, deduplicated=made.deduplicated)

    async def dispatch_many(
        self,
        job: Any,
        inputs: Iterable[Any],
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> int:
        """Dispatch one job per input, all or none; return the number of new jobs."""
        if conn is not None:
            return await super().dispatch_many(job, inputs, conn=conn, notify=notify, **options)
        count: int = await sync_to_async(self.sync.dispatch_many)(job, inputs, **options)
        return count


class DjangoSyncForge(SyncForge):
    """`app.sync` of a Django project."""

    def dispatch(
        self,
        job: Any,
        input: Any = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> Any:
        """Dispatch one job, in the current transaction of Django's connection if there is one."""
        if conn is not None:
            return super().dispatch(job, input, conn=conn, notify=notify, **options)
        dispatcher = self._app.dispatcher
        options = _of_the_request(options)
        with joined_transaction() as own:
            made = without_loop(own, dispatcher.dispatch_on(own, job, input, options))
            wake_on_commit(own, 1, is_request=_is_request(job))
        return SyncHandle(self._loop, made.id, job, deduplicated=not made.is_new)

    def dispatch_many(
        self,
        job: Any,
        inputs: Iterable[Any],
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> int:
        """Dispatch one job per input, all or none; return the number of new jobs."""
        if conn is not None:
            return super().dispatch_many(job, inputs, conn=conn, notify=notify, **options)
        dispatcher = self._app.dispatcher
        options = _of_the_request(options)
        with joined_transaction() as own:
            count = without_loop(own, dispatcher.dispatch_many_on(own, job, inputs, options))
            wake_on_commit(own, count)
        return count


def _of_the_request(options: "DispatchOptions") -> "DispatchOptions":
    """Add the tenant of the request that dispatches, if there is one."""
    tenant = current_tenant()
    return options if tenant is None or "tenant_id" in options else {**options, "tenant_id": tenant}


def _is_request(job: Job) -> bool:
    return isinstance(job, JobDefinition) and job.job_type.queue == BUILTIN_QUEUE


def _reload(*, setting: str, **_: Any) -> None:
    """Follow `override_settings(FORGE=…)`."""
    if setting == NAME:
        app.sync.close()
        app.configure(forge_config())


app = DjangoForge(forge_config())
setting_changed.connect(_reload, dispatch_uid="forge")
