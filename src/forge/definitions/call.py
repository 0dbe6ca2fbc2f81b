"""`@mutation` and `@action`, and the definitions they make: functions callable by name."""

import inspect
import re
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
    overload,
)

from pydantic import ValidationError

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue, NotRegistered
from forge.core.new_job import check_name
from forge.core.payload import HARD_LIMIT, encode
from forge.definitions.call_arguments import Arguments
from forge.definitions.signature import (
    Handler,
    adapter_of,
    attributes_of,
    check_attributes,
    check_function,
    hint_of,
    misfit,
)
from forge.store.connection.transaction import ISOLATIONS, Isolation

if TYPE_CHECKING:
    from uuid import UUID

P = ParamSpec("P")
Out = TypeVar("Out")
# The role needed to call over HTTP. `staff` includes `user`; `manager` is granted with `staff`.
RoleName = Literal["user", "staff", "manager"]
_PATH_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_RETRIES_OF_ISOLATED = 3


class RunsCalls(Protocol):
    """What a mutation or an action needs of its app."""

    async def call(
        self,
        call: "CallDefinition[Any, Any]",
        input: Any = None,
        *,
        auth: dict[str, Any] | None = None,
        tenant_id: int | None = None,
        correlation_id: "UUID | str | None" = None,
    ) -> Any: ...


class CallDefinition(Generic[P, Out]):
    """A mutation or an action: run it with `call`, or call it directly with your own context."""

    kind: ClassVar[Literal["mutation", "action"]]

    def __init__(
        self,
        handler: Callable[P, Coroutine[Any, Any, Out]],
        *,
        name: str | None = None,
        role: RoleName = "user",
        timeout: str | timedelta = "30s",
    ) -> None:
        _check_handler(handler, self.kind)
        self.handler = handler
        self.name = _check_name(name or handler.__name__, self.kind)
        self.role = _check_role(role, self.name)
        self.timeout = parse_duration(timeout, what=f"{self.name}: timeout")
        self.app: RunsCalls | None = None
        self.arguments = Arguments(handler, self.name, self.kind)
        self.output_adapter = adapter_of(hint_of(handler, "return", self.name), self.name)
        self.__doc__ = handler.__doc__
        self.__name__ = handler.__name__
        self.__module__ = handler.__module__
        self.__qualname__ = handler.__qualname__

    async def call(
        self,
        input: Any = None,
        *,
        auth: dict[str, Any] | None = None,
        tenant_id: int | None = None,
        correlation_id: "UUID | str | None" = None,
    ) -> Out:
        """Run it in this process, as the server does for HTTP callers."""
        if self.app is None:
            raise NotRegistered(
                f"{self.name} belongs to no app yet; call app.register({self.__name__}) first"
            )
        returned: Out = await self.app.call(
            self, input, auth=auth, tenant_id=tenant_id, correlation_id=correlation_id
        )
        return returned

    def encode_output(self, value: Any, *, limit: int = HARD_LIMIT) -> str:
        """Validate an output against the handler's annotation and encode it as JSON."""
        what = f"the output of {self.name}"
        if self.output_adapter is None:
            return encode(value, what=what, limit=limit)
        try:
            checked = self.output_adapter.validate_python(value)
        except ValidationError as error:
            raise misfit(what, error) from None
        plain = self.output_adapter.dump_python(checked, mode="json", by_alias=True)
        return encode(plain, what=what, limit=limit)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Out]:
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<forge.{self.kind} {self.name}>"


class MutationDefinition(CallDefinition[P, Out]):
    """A function that runs in one transaction."""

    kind = "mutation"

    def __init__(
        self,
        handler: Callable[P, Coroutine[Any, Any, Out]],
        *,
        name: str | None = None,
        role: RoleName = "user",
        timeout: str | timedelta = "30s",
        isolation: Isolation = "read_committed",
        retries: int | None = None,
    ) -> None:
        super().__init__(handler, name=name, role=role, timeout=timeout)
        self.isolation = _check_isolation(isolation, self.name)
        self.retries = _check_retries(retries, isolation, self.name)


class ActionDefinition(CallDefinition[P, Out]):
    """A function that runs without a transaction of its own."""

    kind = "action"


def _check_handler(handler: Handler, kind: str) -> None:
    check_function(handler, kind)
    if not inspect.iscoroutinefunction(handler):
        name = getattr(handler, "__name__", handler)
        raise InvalidValue(
            f"{name}: a {kind} is `async def`, for it waits for the database on the event loop; "
            "send what blocks through `await asyncio.to_thread(…)`"
        )


def _check_name(value: str, kind: str) -> str:
    name = check_name(value, what=f"the name of a {kind}")
    if not _PATH_SEGMENT.fullmatch(name):
        raise InvalidValue(
            f"the name of a {kind} is part of its address: letters, digits, '_', '.' and '-' only, "
            f"not {name!r}"
        )
    return name


def _check_role(value: RoleName, name: str) -> RoleName:
    if value not in get_args(RoleName):
        raise InvalidValue(f"{name}: role is one of {', '.join(get_args(RoleName))}, not {value!r}")
    return value


def _check_isolation(value: Isolation, name: str) -> Isolation:
    if value not in ISOLATIONS:
        raise InvalidValue(f"{name}: isolation is one of {', '.join(ISOLATIONS)}, not {value!r}")
    return value


def _check_retries(value: int | None, isolation: Isolation, name: str) -> int:
    if value is None:
        return 0 if isolation == "read_committed" else _RETRIES_OF_ISOLATED
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        raise InvalidValue(f"{name}: retries is a whole number from 0 to 100, not {value!r}")
    return value


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
    """Make a definition of the handler, or a decorator that does; pass the definition to `then`."""
    check_attributes(definition.kind, attributes, attributes_of(definition))

    def make(handler: Handler) -> CallDefinition[Any, Any]:
        new = definition(handler, **attributes)
        then(new)
        return new

    return make if handler is None else make(handler)
