"""`app.schedules`: create, enable, disable, run, read and list schedules."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.events import Events
from forge.core.new_job import check_tenant
from forge.core.schedules.edit import ScheduleChanges, SchedulePreview
from forge.core.schedules.record import ScheduleRecord
from forge.definitions.catalog import Catalog, RunStatement
from forge.definitions.schedule import ScheduleDefinition
from forge.jobs.session import Sessions
from forge.schedules import verbs
from forge.schedules.edit import EditRequest, ScheduleEditor
from forge.schedules.verbs import Name, NewSchedule, ScheduleOptions, named
from forge.store import schedules
from forge.store.borrowed import run_on

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
Type = str | ScheduleDefinition[Any]
Verb = Callable[[RunStatement], Awaitable[T]]
Records = list[ScheduleRecord]
MAX_LISTED = 1000


class Schedules:
    """The verbs of schedules: each returns the row, and takes `conn=` for your transaction."""

    def __init__(
        self,
        sessions: Sessions,
        catalog: Catalog,
        definitions: Mapping[str, ScheduleDefinition[Any]],
        events: Events,
        wake_later: Callable[[], None] | None = None,
    ) -> None:
        self._sessions = sessions
        self._catalog = catalog
        self._definitions = definitions
        self._events = events
        # Called after a change in a caller's transaction.
        self._wake_later = wake_later
        self.editor = ScheduleEditor(catalog, definitions)

    def waking(self, wake_later: Callable[[], None]) -> "Schedules":
        """Return the same verbs with another way to wake workers, which needs no event loop."""
        return Schedules(self._sessions, self._catalog, self._definitions, self._events, wake_later)

    async def ensure(
        self,
        type: Type,
        key: str = "",
        payload: Any = None,
        *,
        tenant_id: int | None = None,
        conn: Any = None,
        **options: "Unpack[ScheduleOptions]",
    ) -> ScheduleRecord:
        """Create a schedule, or change and enable the one that exists.

        A new one runs at `next_run_at`, by its clock, or at once. An existing one keeps its time.
        """
        name = named(type, key, tenant_id)
        given = cast(
            ScheduleOptions, {key: value for key, value in options.items() if value is not None}
        )
        definition = self._definitions.get(name.type)

        async def ensured(ask: RunStatement) -> ScheduleRecord:
            encoder = await self._catalog.find_schedule(name.type, definition, ask)
            return await verbs.ensure(ask, NewSchedule(name, payload, given, definition, encoder))

        return await self.carry_out(ensured, conn)

    async def enable(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Let a schedule run: at the time it has, at once if that has passed."""
        name = named(type, key, tenant_id)
        return await self.carry_out(lambda ask: verbs.set_enabled(ask, name, True), conn)

    async def disable(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Disable a schedule; a run in progress finishes."""
        name = named(type, key, tenant_id)
        return await self.carry_out(lambda ask: verbs.set_enabled(ask, name, False), conn)

    async def sync_enabled(
        self,
        type: Type,
        key: str,
        query: str,
        *args: Any,
        tenant_id: int | None = None,
        conn: Any = None,
    ) -> ScheduleRecord:
        """Enable a schedule if a query of yours returns a row, else disable it.

        Safe against a concurrent transaction that adds a row and enables the schedule.
        """
        name = named(type, key, tenant_id)
        return await self.carry_out(lambda ask: verbs.sync_enabled(ask, name, query, args), conn)

    async def run_now(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Run a schedule at once, out of turn; one that runs is run once more."""
        name = named(type, key, tenant_id)
        return await self.carry_out(lambda ask: verbs.run_now(ask, name), conn)

    async def edit(
        self,
        type: Type,
        key: str = "",
        *,
        tenant_id: int | None = None,
        conn: Any = None,
        reset: bool = False,
        reason: str | None = None,
        actor: str | None = None,
        **changes: "Unpack[ScheduleChanges]",
    ) -> ScheduleRecord:
        """Change a schedule that exists, with an audit event; None removes a value.

        What is edited stays when a `cron` in code writes its row again, until `reset=True`.
        """
        name = named(type, key, tenant_id)

        async def edit(ask: RunStatement) -> ScheduleRecord:
            found = await verbs.id_of(ask, name)
            request = EditRequest(found, changes, reset, reason, actor)
            return await self.editor.edit(ask, request)

        return await self.carry_out(edit, conn)

    async def preview(
        self,
        type: Type,
        key: str = "",
        *,
        tenant_id: int | None = None,
        conn: Any = None,
        count: int = 5,
        reset: bool = False,
        **changes: "Unpack[ScheduleChanges]",
    ) -> SchedulePreview:
        """Check an edit without making it, and return when the schedule would run after it."""
        name = named(type, key, tenant_id)

        async def look(ask: RunStatement) -> SchedulePreview:
            request = EditRequest(await verbs.id_of(ask, name), changes, reset)
            return await self.editor.preview(ask, request, count)

        return await self.read(look, conn)

    async def get(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Return the current state of a schedule."""
        name = named(type, key, tenant_id)
        return await self.read(lambda ask: verbs.get(ask, name), conn)

    async def list(
        self,
        type: Type | None = None,
        *,
        key: str | None = None,
        enabled: bool | None = None,
        tenant_id: int | None = None,
        before: UUID | None = None,
        limit: int = 100,
        conn: Any = None,
    ) -> Records:
        """Return schedules, the newest first; `before` is the id of the last one of a page."""
        text = type.name if isinstance(type, ScheduleDefinition) else type
        most = max(1, min(limit, MAX_LISTED))
        page = schedules.listed(text, key, enabled, check_tenant(tenant_id), before, most)
        return await self.read(lambda ask: ask(page), conn)

    async def plant(self, ask: RunStatement) -> None:
        """Create the rows of cron schedules; a disabled one stays disabled."""
        for definition in self._definitions.values():
            if definition.plants_itself:
                name = Name(definition.name)
                encoder = await self._catalog.find_schedule(name.type, definition, ask)
                await verbs.ensure(
                    ask, NewSchedule(name, None, {}, definition, encoder, is_planted=True)
                )

    async def plant_at_start(self) -> None:
        """Create the rows of cron schedules when an app or a server starts.

        It starts even if the database is away or not migrated yet: a worker and
        `forge migrate --app` create the same rows.
        """
        if not any(one.plants_itself for one in self._definitions.values()):
            return
        try:
            await self.plant(self._sessions.run)
        except ForgeError as error:
            what = "the rows of cron schedules were not written; a worker writes them"
            self._events.notice("warning", what, error=str(error))

    async def carry_out(self, verb: Verb[T], conn: Any, tenant: int | None = None) -> T:
        """Run a verb in the caller's transaction or in one of its own, and wake workers.

        A transaction of its own sees only the rows of `tenant` where row security holds.
        """
        if conn is not None:
            done = await verb(partial(run_on, conn))
            (self._wake_later or self._sessions.here().wake_later)()
            return done
        session = self._sessions.here()
        async with (await session.database()).transaction(tenant) as own:
            done = await verb(partial(run_on, own))
        session.wake()
        return done

    async def read(self, verb: Verb[T], conn: Any) -> T:
        """Run a verb that only reads, in the caller's transaction where `conn` is given."""
        if conn is not None:
            return await verb(partial(run_on, conn))
        return await verb(self._sessions.run)
