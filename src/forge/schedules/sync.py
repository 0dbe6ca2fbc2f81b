"""`app.sync.schedules`: the same verbs for code without an event loop."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from forge.loop_app import LoopApp
from forge.schedules.app_schedules import Schedules
from forge.store.borrowed import without_loop

if TYPE_CHECKING:
    from forge.app import Forge

P = ParamSpec("P")
T = TypeVar("T")


def _waited_for(
    verb: Callable[Concatenate[Schedules, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[SyncSchedules, P], T]":
    @wraps(verb)
    def wait(self: "SyncSchedules", /, *args: P.args, **options: P.kwargs) -> T:
        if (conn := options.get("conn")) is None:
            return self._elsewhere.wait(lambda app: verb(app.schedules, *args, **options))
        return without_loop(conn, verb(self._here, *args, **options))

    return wait


class SyncSchedules:
    """Each verb returns the row, and takes `conn=` for your transaction."""

    def __init__(self, app: "Forge", elsewhere: LoopApp) -> None:
        self._here = Schedules(app, wake_later=elsewhere.wake_later)
        self._elsewhere = elsewhere

    ensure = _waited_for(Schedules.ensure)
    enable = _waited_for(Schedules.enable)
    disable = _waited_for(Schedules.disable)
    sync_enabled = _waited_for(Schedules.sync_enabled)
    run_now = _waited_for(Schedules.run_now)
    get = _waited_for(Schedules.get)
    list = _waited_for(Schedules.list)
