"""`app.sync.dead_letters`: the same verbs for code without an event loop."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from forge.core.errors import InvalidValue
from forge.dead_letters.review import DeadLetters
from forge.sync.handle import SyncHandle
from forge.sync.loop import LoopApp

P = ParamSpec("P")
T = TypeVar("T")


def _waited_for(
    verb: Callable[Concatenate[DeadLetters, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncDeadLetters", P], T]:
    @wraps(verb)
    def wait(self: "SyncDeadLetters", /, *args: P.args, **options: P.kwargs) -> T:
        if options.get("conn") is not None:
            # The audit of a request is written first, in a transaction of its own.
            raise InvalidValue(
                "app.sync.dead_letters takes no conn=; leave it out, or use "
                "`await app.dead_letters` in your transaction"
            )
        return self._loop.wait(lambda app: verb(app.dead_letters, *args, **options))

    return wait


class SyncDeadLetters:
    """The jobs that need a person: list, group, reprocess, discard."""

    def __init__(self, loop: LoopApp) -> None:
        self._loop = loop

    list = _waited_for(DeadLetters.list)
    get = _waited_for(DeadLetters.get)
    groups = _waited_for(DeadLetters.groups)
    activity = _waited_for(DeadLetters.activity)
    statistics = _waited_for(DeadLetters.statistics)
    reprocess = _waited_for(DeadLetters.reprocess)
    check_reprocess = _waited_for(DeadLetters.check_reprocess)
    discard = _waited_for(DeadLetters.discard)
    plan = _waited_for(DeadLetters.plan)
    _reprocess_many = _waited_for(DeadLetters.reprocess_many)

    _discard_many = _waited_for(DeadLetters.discard_many)

    def reprocess_many(self, **wanted: Any) -> SyncHandle:
        """Have a worker make new jobs of all that match, as `app.dead_letters` does."""
        return SyncHandle(self._loop, self._reprocess_many(**wanted).id)

    def discard_many(self, **wanted: Any) -> SyncHandle:
        """Have a worker discard all that match, as `app.dead_letters` does."""
        return SyncHandle(self._loop, self._discard_many(**wanted).id)
