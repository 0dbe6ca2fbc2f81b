"""A pause of a job type, a queue, or a type in a queue."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forge.core.errors import InvalidValue
from forge.core.job import BUILTIN_QUEUE, BUILTIN_TYPES
from forge.core.new_job import check_name
from forge.core.suggestion import did_you_mean

LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """One row of forge_pauses: workers start no job, and no run, that it covers."""

    pause_id: UUID
    type: str | None
    queue: str | None
    # None: until it is resumed.
    until: datetime | None
    reason: str
    actor: str | None
    created_at: datetime

    @property
    def target(self) -> str:
        """What is paused, in words.

        >>> from datetime import datetime
        >>> from uuid import UUID
        >>> Pause(pause_id=UUID(int=1), type="export", queue="mail", until=None, reason="full",
        ...       actor=None, created_at=datetime.min).target
        'type export in queue mail'
        """
        return target_in_words(self.type, self.queue)

    def covers(self, type: str, queue: str) -> bool:
        """Whether jobs of this type in this queue are paused; runs of schedules have no queue."""
        return self.type in (None, type) and self.queue in (None, queue)


def target_in_words(type: str | None, queue: str | None) -> str:
    """Name what is paused."""
    if type is None:
        return f"queue {queue}"
    return f"type {type}" if queue is None else f"type {type} in queue {queue}"


def check_target(type: str | None, queue: str | None) -> None:
    """Raise InvalidValue unless these name something that can be paused."""
    if type is None and queue is None:
        raise InvalidValue("a pause needs a type, a queue or both; name at least one of them")
    for name, what in ((type, "type"), (queue, "queue")):
        if name is not None:
            check_name(name, what=what)
    if (type or "").startswith(BUILTIN_TYPES) or queue == BUILTIN_QUEUE:
        raise InvalidValue(
            f"{target_in_words(type, queue)} cannot be paused: built-in jobs carry out requests "
            "such as cancel; pause the types and queues of your own jobs"
        )


def check_reason(reason: object) -> str:
    """Return the reason of a pause, or raise InvalidValue."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidValue("a pause needs a reason; explain why the jobs have to wait")
    return check_name(reason, what="reason", longest=LONGEST_REASON)


def unknown_names(
    type: str | None, queue: str | None, types: Iterable[str], queues: Iterable[str]
) -> str | None:
    """Return a warning if nothing that is registered has these names; None if something does.

    >>> unknown_names("exprot", None, ["export"], [])
    "no job type or schedule 'exprot' is registered: did you mean 'export'?"
    """
    unknown = []
    if type is not None and type not in (known := list(types)):
        unknown.append(f"no job type or schedule {type!r} is registered{did_you_mean(type, known)}")
    if queue is not None and queue not in (known := list(queues)):
        unknown.append(f"no job type or worker names queue {queue!r}{did_you_mean(queue, known)}")
    return "; ".join(unknown) or None
