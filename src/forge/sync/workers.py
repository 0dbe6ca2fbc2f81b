"""`app.sync.workers`: the same verbs for code without an event loop."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from forge.operations.workers import Workers
from forge.sync.loop import LoopApp

P = ParamSpec("P")
T = TypeVar("T")


def _waited_for(
    verb: Callable[Concatenate[Workers, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[SyncWorkers, P], T]":
    @wraps(verb)
    def wait(self: "SyncWorkers", /, *args: P.args, **options: P.kwargs) -> T:
        return self._loop.wait(lambda app: verb(app.workers, *args, **options))

    return wait


class SyncWorkers:
    """The workers: list, drain, resume, and what each runs now."""

    def __init__(self, loop: LoopApp) -> None:
        self._loop = loop

    list = _waited_for(Workers.list)
    get = _waited_for(Workers.get)
    drain = _waited_for(Workers.drain)
    drain_all = _waited_for(Workers.drain_all)
    resume = _waited_for(Workers.resume)
    resume_all = _waited_for(Workers.resume_all)
