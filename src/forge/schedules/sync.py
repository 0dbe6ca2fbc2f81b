"""`app.sync.schedules`: the same verbs for code without an event loop."""

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from forge.core.schedule_record import ScheduleRecord
from forge.loop_app import LoopApp
from forge.schedules import verbs
from forge.schedules.app_schedules import Records, Type, Verb, ensuring, listing
from forge.schedules.verbs import Options, named
from forge.store.borrowed import run_on, without_loop

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge

T = TypeVar("T")


class SyncSchedules:
    """Each verb returns the row, and takes `conn=` for your transaction."""

    def __init__(self, app: "Forge", elsewhere: LoopApp) -> None:
        self._app = app
        self._elsewhere = elsewhere

    def ensure(
        self,
        type: Type,
        key: str = "",
        payload: Any = None,
        *,
        tenant_id: int | None = None,
        conn: Any = None,
        **options: "Unpack[Options]",
    ) -> ScheduleRecord:
        """See to it that a schedule is there and enabled."""
        name = named(type, key, tenant_id)
        return self._carry_out(ensuring(self._app, name, payload, options), conn)

    def enable(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Let a schedule run: at the time it has, at once if that has passed."""
        name = named(type, key, tenant_id)
        return self._carry_out(lambda ask: verbs.set_enabled(ask, name, True), conn)

    def disable(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Let a schedule rest; a run that goes on is finished."""
        name = named(type, key, tenant_id)
        return self._carry_out(lambda ask: verbs.set_enabled(ask, name, False), conn)

    def sync_enabled(
        self,
        type: Type,
        key: str,
        query: str,
        *args: Any,
        tenant_id: int | None = None,
        conn: Any = None,
    ) -> ScheduleRecord:
        """Enable a schedule if a query of yours returns a row, else disable it."""
        name = named(type, key, tenant_id)
        return self._carry_out(lambda ask: verbs.sync_enabled(ask, name, query, args), conn)

    def run_now(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Run a schedule at once, out of turn; one that runs is run once more."""
        name = named(type, key, tenant_id)
        return self._carry_out(lambda ask: verbs.run_now(ask, name), conn)

    def get(
        self, type: Type, key: str = "", *, tenant_id: int | None = None, conn: Any = None
    ) -> ScheduleRecord:
        """Return a schedule as it stands now."""
        name = named(type, key, tenant_id)
        return self._read(lambda ask: verbs.get(ask, name), conn)

    def list(
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
        return self._read(listing(type, enabled, tenant_id, before, limit), conn)

    def _carry_out(self, verb: Verb[T], conn: Any) -> T:
        if conn is None:
            return self._elsewhere.wait(lambda app: app.schedules.carry_out(verb, None))
        done = without_loop(conn, verb(partial(run_on, conn)))
        self._elsewhere.wake_later()
        return done

    def _read(self, verb: Verb[T], conn: Any) -> T:
        if conn is None:
            return self._elsewhere.wait(lambda app: app.schedules.read(verb, None))
        return without_loop(conn, verb(partial(run_on, conn)))
