"""The part of an app that concerns schedules: their handlers, and the way to their rows."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from forge.core.errors import InvalidValue
from forge.schedules import decorator
from forge.schedules.app_schedules import Schedules
from forge.schedules.definition import ScheduleDefinition

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.schedules.definition import ScheduleAttributes


class Recurring:
    """What runs again and again in an app."""

    def __init__(self) -> None:
        self.schedule_definitions: dict[str, ScheduleDefinition[Any]] = {}

    @property
    def schedules(self) -> Schedules:
        """The verbs of schedules: `await app.schedules.ensure("fetch_feed", "42", …)`."""
        return Schedules(cast("Forge", self))

    def schedule(
        self,
        type: str,
        /,
        *,
        every: str | timedelta | None = None,
        **attributes: "Unpack[ScheduleAttributes]",
    ) -> decorator.Decorates:
        """Define the handler of a type of schedules and register it, in one."""
        return self._then_register(decorator.schedule(type, every=every, **attributes))

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str = "UTC",
        type: str | None = None,
        **attributes: "Unpack[ScheduleAttributes]",
    ) -> decorator.Decorates:
        """Define what runs by the clock and register it, in one."""
        return self._then_register(decorator.cron(expression, tz=tz, type=type, **attributes))

    def _then_register(self, make: decorator.Decorates) -> decorator.Decorates:
        def made(handler: Any) -> ScheduleDefinition[Any]:
            definition: ScheduleDefinition[Any] = make(handler)
            self._register_schedule(definition)
            return definition

        return made

    def _register_schedule(self, definition: ScheduleDefinition[Any]) -> None:
        known = self.schedule_definitions.get(definition.name)
        if known is not None and known is not definition:
            raise InvalidValue(
                f"there are two handlers for schedules of type {definition.name!r}; give one "
                "another type"
            )
        definition.app = cast("Forge", self)
        self.schedule_definitions[definition.name] = definition
