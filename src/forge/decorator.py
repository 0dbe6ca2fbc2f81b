"""How `@job` is typed: the types of the function become those of the job."""

from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar, overload

from forge.core.job import PriorityLike
from forge.core.retry import Retry
from forge.core.rules import Category
from forge.core.wish import Isolation
from forge.registry import Idempotent, JobDefinition

In = TypeVar("In")
Out = TypeVar("Out")


class MakesJobs(Protocol):
    """`forge.job` and `app.job`: a decorator as it is, or one with attributes."""

    @overload
    def __call__(
        self, handler: Callable[[Any, In], Coroutine[Any, Any, Out]], /
    ) -> JobDefinition[In, Out, Coroutine[Any, Any, Out]]: ...
    @overload
    def __call__(
        self, handler: Callable[[Any], Coroutine[Any, Any, Out]], /
    ) -> JobDefinition[None, Out, Coroutine[Any, Any, Out]]: ...
    @overload
    def __call__(self, handler: Callable[[Any, In], Out], /) -> JobDefinition[In, Out, Out]: ...
    @overload
    def __call__(self, handler: Callable[[Any], Out], /) -> JobDefinition[None, Out, Out]: ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        timeout: str | timedelta = "1h",
        priority: PriorityLike = "normal",
        max_attempts: int | None = None,
        retry: Retry | None = None,
        worker_capability: str | None = None,
        queue: str = "default",
        idempotent: Idempotent = False,
        category: Category | None = None,
        requires: Sequence[str] | None = None,
        allow_sensitive: Sequence[str] = (),
        dead_letter: bool = True,
        isolation: Isolation = "none",
    ) -> "MakesJobs": ...
