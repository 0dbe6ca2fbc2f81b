"""What `@schedule` and `@cron` make: the handler of a type of schedules, and its defaults."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, TypeVar

from forge.core.errors import InvalidValue
from forge.core.job import PriorityLike
from forge.core.retry import Retry
from forge.core.run import write_next
from forge.core.schedule import Missed, make_rule
from forge.core.wish import Isolation
from forge.registry import JobDefinition
from forge.signature import Handler

if TYPE_CHECKING:
    from typing_extensions import Unpack

In = TypeVar("In")
Next = datetime | timedelta | None


class RunAttributes(TypedDict, total=False):
    """What a schedule has in common with a job."""

    timeout: str | timedelta
    priority: PriorityLike
    worker_capability: str | None
    retry: Retry | None
    isolation: Isolation


class ScheduleAttributes(RunAttributes, total=False):
    """What `@schedule` and `@cron` both take."""

    missed: Missed
    jitter: str | timedelta | None


class ScheduleDefinition(JobDefinition[In, Next]):
    """A function that runs again and again, for each schedule of its type."""

    def __init__(
        self,
        handler: Handler,
        *,
        type: str | None = None,
        every: str | timedelta | None = None,
        cron: str | None = None,
        tz: str | None = None,
        missed: Missed = "once",
        jitter: str | timedelta | None = None,
        **attributes: "Unpack[RunAttributes]",
    ) -> None:
        super().__init__(handler, name=type, **attributes)
        _check_retry(self.retry, self.name)
        self.rule = make_rule(self.name, every, cron, tz, missed, jitter)

    @property
    def plants_itself(self) -> bool:
        """Whether a worker makes the row when it starts."""
        return self.rule.cron is not None

    def write_output(self, value: Any, *, limit: int) -> str | None:
        """Write down when the handler wants to run next."""
        return write_next(value)

    async def dispatch(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse: a schedule runs by its own row."""
        raise self.not_a_job()

    def not_a_job(self) -> InvalidValue:
        return InvalidValue(
            f"{self.name} is a schedule, not a job; call app.schedules.run_now({self.name!r}), or "
            "make a job of what both should do"
        )

    def __repr__(self) -> str:
        return f"<forge.{'cron' if self.plants_itself else 'schedule'} {self.name}>"


def _check_retry(retry: Retry | None, name: str) -> None:
    if retry is not None and retry.max_attempts is not None:
        raise InvalidValue(
            f"{name}: a schedule is tried until it succeeds or its next tick comes; leave "
            "max_attempts out of Retry(…)"
        )
