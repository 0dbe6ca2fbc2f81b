"""`app.schedules`."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.schedule_record import ScheduleRecord
from forge.core.wish import check_tenant
from forge.schedules import verbs
from forge.schedules.definition import ScheduleDefinition
from forge.schedules.verbs import Ask, Name, Options, Wish, named
from forge.store import schedules
from forge.store.borrowed import run_on

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge

T = TypeVar("T")
Type = str | ScheduleDefinition[Any]
Verb = Callable[[Ask], Awaitable[T]]
Records = list[ScheduleRecord]
MOST_LISTED = 1000


class Schedules:
    """The verbs of schedules: each returns the row, and takes `conn=` for your transaction."""

    def __init__(self, app: "Forge", wake_later: Callable[[], None] | None = None) -> None:
        self._app = app
        self._wake_later = wake_later

    async def ensure(
        self,
        type: Type,
        key: str = "",
        payload: Any = None,
        *,
        tenant_id: int | None = None,
        conn: Any = None,
        **options: "Unpack[Options]",
    ) -> ScheduleRecord:
        """See to it that a schedule is there and enabled.

        A new one runs at `next_run_at`, by its clock, or at once. One that is there keeps its time.
        """
        name = named(type, key, tenant_id)
        given = cast(Options, {key: value for key, value in options.items() if value is not None})
        definition = self._app.schedule_definitions.get(name.type)

        async def ensured(ask: Ask) -> ScheduleRecord:
            kind = await self._app._catalog.find_schedule(name.type, definition, ask)
            return await verbs.ensure(ask, Wish(name, payload, given, definition, kind))

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
        """Let a schedule rest; a run that goes on is finished."""
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

        Safe against whoever enables it at the same moment for a row that they are about to commit.
        """
        name = named(type, key, tenant_id)
        return await self.carry_out(lambda ask: verbs.sync_enabled(ask, name, query, args), conn)

    async def run_now(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Run a schedule at once, out of turn; one that runs is run once more."""
        name = named(type, key, tenant_id)
        return await self.carry_out(lambda ask: verbs.run_now(ask, name), conn)

    async def get(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Return a schedule as it stands now."""
        name = named(type, key, tenant_id)
        return await self.read(lambda ask: verbs.get(ask, name), conn)

    async def list(
        self,
        type: Type | None = None,
        *,
        enabled: bool | None = None,
        tenant_id: int | None = None,
        before: UUID | None = None,
        limit: int = 100,
        conn: Any = None,
    ) -> Records:
        """Return schedules, the newest first; `before` is the id of the last one of a page."""
        text = type.name if isinstance(type, ScheduleDefinition) else type
        most = max(1, min(limit, MOST_LISTED))
        page = schedules.listed(text, enabled, check_tenant(tenant_id), before, most)
        return await self.read(lambda ask: ask(page), conn)

    async def plant(self, ask: Ask) -> None:
        """Make the rows of what runs by the clock; one that somebody disabled stays so."""
        for definition in self._app.schedule_definitions.values():
            if definition.plants_itself:
                name = Name(definition.name)
                kind = await self._app._catalog.find_schedule(name.type, definition, ask)
                await verbs.ensure(ask, Wish(name, None, {}, definition, kind, is_planted=True))

    async def plant_at_start(self) -> None:
        """Make the rows of what runs by the clock when an app or a server starts.

        A database that is away or not migrated yet does not keep it from starting: a worker and
        `forge migrate --app` make the same rows.
        """
        if not any(one.plants_itself for one in self._app.schedule_definitions.values()):
            return
        try:
            await self.plant((await (await self._app.session()).database()).run)
        except ForgeError as error:
            what = "the rows of cron schedules were not written; a worker writes them"
            self._app.events.notice("warning", what, error=str(error))

    async def carry_out(self, verb: Verb[T], conn: Any, tenant: int | None = None) -> T:
        """Do something in a transaction, and tell the workers to look.

        One of its own shows it a tenant's rows alone, where row security holds.
        """
        if conn is not None:
            done = await verb(partial(run_on, conn))
            (self._wake_later or (await self._app.session()).wake_later)()
            return done
        session = await self._app.session()
        async with (await session.database()).transaction(tenant) as own:
            done = await verb(partial(run_on, own))
        session.wake()
        return done

    async def read(self, verb: Verb[T], conn: Any) -> T:
        """Ask something, in the caller's transaction where `conn` is given."""
        if conn is not None:
            return await verb(partial(run_on, conn))
        return await verb((await (await self._app.session()).database()).run)
