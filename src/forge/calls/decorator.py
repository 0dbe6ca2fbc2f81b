"""`@mutation` and `@action`: decorators as they are, or with attributes."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from forge.calls.definition import (
    ActionDefinition,
    CallDefinition,
    MutationDefinition,
    RoleName,
)
from forge.signature import Handler, attributes_of, check_attributes
from forge.store.transaction import Isolation

P = ParamSpec("P")
Out = TypeVar("Out")


class MakesMutations(Protocol):
    """`forge.mutation` and `app.mutation`."""

    @overload
    def __call__(
        self, handler: Callable[P, Coroutine[Any, Any, Out]], /
    ) -> MutationDefinition[P, Out]: ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        role: RoleName = "user",
        timeout: str | timedelta = "30s",
        isolation: Isolation = "read_committed",
        retries: int | None = None,
    ) -> "MakesMutations": ...


class MakesActions(Protocol):
    """`forge.action` and `app.action`."""

    @overload
    def __call__(
        self, handler: Callable[P, Coroutine[Any, Any, Out]], /
    ) -> ActionDefinition[P, Out]: ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        role: RoleName = "user",
        timeout: str | timedelta = "30s",
    ) -> "MakesActions": ...


def _mutation(handler: Handler | None = None, /, **attributes: Any) -> Any:
    """Make a function a mutation: it runs in one transaction, committed when it returns.

    >>> @mutation(isolation="serializable")
    ... async def register_user(ctx, email: str) -> None:
    ...     await ctx.db.execute("insert into users (email) values ($1)", email)
    >>> register_user
    <forge.mutation register_user>
    """
    return made(MutationDefinition, handler, attributes)


def _action(handler: Handler | None = None, /, **attributes: Any) -> Any:
    """Make a function an action: it runs without a transaction.

    >>> @action(timeout="5s")
    ... async def receive_webhook(ctx, event: dict) -> None:
    ...     await ctx.dispatch_job("process_webhook", event)
    >>> receive_webhook
    <forge.action receive_webhook>
    """
    return made(ActionDefinition, handler, attributes)


mutation: MakesMutations = _mutation
action: MakesActions = _action


def made(
    definition: type[CallDefinition[Any, Any]],
    handler: Handler | None,
    attributes: dict[str, Any],
    then: Callable[[CallDefinition[Any, Any]], None] = lambda made: None,
) -> Any:
    """Make a definition of the handler, or a decorator that will, and do what is to be done."""
    check_attributes(definition.kind, attributes, attributes_of(definition))

    def make(handler: Handler) -> CallDefinition[Any, Any]:
        new = definition(handler, **attributes)
        then(new)
        return new

    return make if handler is None else make(handler)
