"""`app.sync.schedules`: the same verbs for code without an event loop."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from forge.schedules.app_schedules import Schedules
from forge.store.borrowed import without_loop
from forge.sync.loop import LoopApp

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
            return self._loop.wait(lambda app: verb(app.schedules, *args, **options))
        here = self._app.schedules.waking(self._loop.wake_later)
        return without_loop(conn, verb(here, *args, **options))

    return wait


class SyncSchedules:
    """Each verb returns the row, and takes `conn=` for your transaction."""

    def __init__(self, app: "Forge", loop: LoopApp) -> None:
        self._app = app
        self._loop = loop

    ensure = _waited_for(Schedules.ensure)
    enable = _waited_for(Schedules.enable)
    disable = _waited_for(Schedules.disable)
    sync_enabled = _waited_for(Schedules.sync_enabled)
    run_now = _waited_for(Schedules.run_now)
    edit = _waited_for(Schedules.edit)
    preview = _waited_for(Schedules.preview)
    get = _waited_for(Schedules.get)
    list = _waited_for(Schedules.list)
