"""Checks that must be awaited: one whose `await` is forgotten would let its test pass."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Check(Generic[T]):
    """A check that runs when it is awaited."""

    def __init__(self, name: str, run: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.name = name
        self._run = run
        _WAITING.append(self)

    def __await__(self) -> Generator[Any, None, T]:
        _WAITING.remove(self)
        return self._run().__await__()


_WAITING: list[Check[Any]] = []


def must_be_awaited(check: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Awaitable[T]]:
    """Make a coroutine function one whose forgotten calls `forgotten` reports."""

    @wraps(check)
    def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        return Check(check.__name__, lambda: check(*args, **kwargs))

    return call


def forgotten() -> list[str]:
    """Return the names of the checks that were not awaited, and forget them."""
    names = [check.name for check in _WAITING]
    _WAITING.clear()
    return names
