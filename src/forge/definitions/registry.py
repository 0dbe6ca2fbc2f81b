"""The definitions of an app by name, and the decorators that define and register in one."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from forge.core.errors import InvalidValue, NotRegistered
from forge.core.suggestion import did_you_mean
from forge.definitions import schedule as schedules
from forge.definitions.call import (
    ActionDefinition,
    CallDefinition,
    MutationDefinition,
    RunsCalls,
    made,
)
from forge.definitions.job import DispatchesJobs, JobDefinition, job
from forge.definitions.schedule import ScheduleDefinition
from forge.definitions.signature import Handler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.definitions.schedule import ScheduleAttributes

J = TypeVar("J", bound=JobDefinition[Any, Any])


class DefinitionApp(DispatchesJobs, RunsCalls, Protocol):
    """What definitions need of the app that they are registered with."""


class Registry:
    """Keeps jobs, schedules, mutations and actions by name; a name has one definition."""

    def __init__(self, app: DefinitionApp) -> None:
        self._app = app
        self.jobs: dict[str, JobDefinition[Any, Any]] = {}
        self.schedules: dict[str, ScheduleDefinition[Any]] = {}
        self.calls: dict[str, CallDefinition[Any, Any]] = {}

    def register(self, definition: JobDefinition[Any, Any] | CallDefinition[Any, Any]) -> None:
        """Add a definition, or refuse a name that another one has."""
        match definition:
            case CallDefinition():
                self._add_call(definition)
            case ScheduleDefinition():
                self._add_schedule(definition)
            case JobDefinition():
                self._add_job(definition)
            case _:
                raise InvalidValue(
                    f"app.register takes definitions, not {definition!r}; decorate it first, for "
                    "example with @forge.job"
                )

    def find_call(self, call: CallDefinition[Any, Any] | str) -> CallDefinition[Any, Any]:
        """Return a mutation or an action by its name, or as it is."""
        if isinstance(call, CallDefinition):
            return call
        if not isinstance(call, str):
            raise InvalidValue(
                "app.call takes a mutation or an action, or its name, not "
                f"{type(call).__name__}; make it one with @app.mutation or @app.action"
            )
        if (found := self.calls.get(call)) is None:
            raise NotRegistered(
                f"this app has no mutation or action named {call!r}"
                f"{did_you_mean(call, self.calls)}; register it with app.register(…)"
            )
        return found

    def job(self, handler: Handler | None = None, /, **attributes: Any) -> Any:
        """Define a job and register it."""
        if handler is not None:
            return self._registered(JobDefinition(handler))
        make = job(**attributes)
        return lambda handler: self._registered(make(handler))

    def mutation(self, handler: Handler | None = None, /, **attributes: Any) -> Any:
        """Define a mutation and register it."""
        return made(MutationDefinition, handler, attributes, self._add_call)

    def action(self, handler: Handler | None = None, /, **attributes: Any) -> Any:
        """Define an action and register it."""
        return made(ActionDefinition, handler, attributes, self._add_call)

    def schedule(
        self,
        type: str,
        /,
        *,
        every: str | timedelta | None = None,
        **attributes: "Unpack[ScheduleAttributes]",
    ) -> schedules.ScheduleDecorator:
        """Define the handler of a type of schedules and register it."""
        make = schedules.schedule(type, every=every, **attributes)
        return lambda handler: self._registered(make(handler))

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str = "UTC",
        type: str | None = None,
        **attributes: "Unpack[ScheduleAttributes]",
    ) -> schedules.ScheduleDecorator:
        """Define a function that runs by the clock and register it."""
        make = schedules.cron(expression, tz=tz, type=type, **attributes)
        return lambda handler: self._registered(make(handler))

    def _registered(self, definition: J) -> J:
        self.register(definition)
        return definition

    def _add_job(self, definition: JobDefinition[Any, Any]) -> None:
        if self.jobs.get(definition.name, definition) is not definition:
            raise InvalidValue(
                f"there are two jobs named {definition.name!r}; give one another name with "
                "@forge.job(name=…)"
            )
        if definition.name.startswith("forge."):
            raise InvalidValue(f"{definition.name!r}: names in forge.* are Forge's; choose another")
        definition.app = self._app
        self.jobs[definition.name] = definition

    def _add_schedule(self, definition: ScheduleDefinition[Any]) -> None:
        if self.schedules.get(definition.name, definition) is not definition:
            raise InvalidValue(
                f"there are two handlers for schedules of type {definition.name!r}; give one "
                "another type"
            )
        definition.app = self._app
        self.schedules[definition.name] = definition

    def _add_call(self, definition: CallDefinition[Any, Any]) -> None:
        known = self.calls.get(definition.name, definition)
        if known is not definition:
            raise InvalidValue(
                f"there is a {known.kind} named {definition.name!r} already; give one another name "
                f"with @forge.{definition.kind}(name=…)"
            )
        definition.app = self._app
        self.calls[definition.name] = definition
