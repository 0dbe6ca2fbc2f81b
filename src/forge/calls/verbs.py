"""The verbs of an app that concern mutations and actions."""

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from forge.calls.context import Who
from forge.calls.decorator import made
from forge.calls.definition import ActionDefinition, CallDefinition, MutationDefinition
from forge.calls.run import run
from forge.core.errors import InvalidValue, NotRegistered
from forge.core.suggestion import did_you_mean
from forge.signature import Handler

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.calls.decorator import MakesActions, MakesMutations


class Calls:
    """What an app can be called for."""

    def __init__(self) -> None:
        self.calls: dict[str, CallDefinition[Any, Any]] = {}

    @property
    def mutation(self) -> "MakesMutations":
        """Define a mutation and register it, in one: `@app.mutation`."""
        return self._mutation

    @property
    def action(self) -> "MakesActions":
        """Define an action and register it, in one: `@app.action`."""
        return self._action

    async def call(
        self,
        call: CallDefinition[Any, Any] | str,
        input: Any = None,
        *,
        auth: dict[str, Any] | None = None,
        tenant_id: int | None = None,
        correlation_id: UUID | str | None = None,
    ) -> Any:
        """Run a mutation or an action here and now, and return what it returns."""
        app = cast("Forge", self)
        definition = self._named(call) if isinstance(call, str) else call
        if not isinstance(definition, CallDefinition):
            raise InvalidValue(
                "app.call takes a mutation or an action, or its name, not "
                f"{type(call).__name__}; make it one with @app.mutation or @app.action"
            )
        given = definition.arguments.of_python(input, limit=app.config.payload.max_input)
        answer = await run(app, definition, given, Who.of(auth, tenant_id, correlation_id))
        return answer.value

    def _mutation(self, handler: Handler | None = None, /, **attributes: Any) -> Any:
        return made(MutationDefinition, handler, attributes, self._register_call)

    def _action(self, handler: Handler | None = None, /, **attributes: Any) -> Any:
        return made(ActionDefinition, handler, attributes, self._register_call)

    def _register_call(self, definition: CallDefinition[Any, Any]) -> None:
        known = self.calls.get(definition.name)
        if known is not None and known is not definition:
            raise InvalidValue(
                f"there is a {known.kind} named {definition.name!r} already; give one another name "
                f"with @forge.{definition.kind}(name=…)"
            )
        definition.app = cast("Forge", self)
        self.calls[definition.name] = definition

    def _named(self, name: str) -> CallDefinition[Any, Any]:
        if (found := self.calls.get(name)) is None:
            raise NotRegistered(
                f"this app has no mutation or action named {name!r}"
                f"{did_you_mean(name, self.calls)}; register it with app.register(…)"
            )
        return found
