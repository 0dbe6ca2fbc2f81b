"""The conditions on jobs that lists, counts, commands and bulk actions share."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self, TypedDict, get_args
from uuid import UUID

from forge.core.errors import InvalidValue
from forge.core.job import PriorityLike
from forge.core.lifecycle import State, Status
from forge.core.new_job import (
    check_moment,
    check_name,
    check_tenant,
    parse_priority,
    parse_uuid,
)
from forge.core.payload import encode
from forge.core.payload_rules import CATEGORIES
from forge.core.retry import ErrorClass
from forge.core.suggestion import suggestion

NEWEST = UUID(int=2**128 - 1)
OLDEST = UUID(int=0)
# Ids contain the time of the process that created them, which may differ from the database's.
CLOCK_SKEW = timedelta(minutes=1)


class JobCriteria(TypedDict, total=False):
    """The conditions as Python callers write them; None means any."""

    status: Status | str | Collection[Status | str] | None
    state: State | str | None
    type: str | None
    queue: str | None
    priority: PriorityLike | None
    since: datetime | None
    until: datetime | None
    category: str | None
    correlation_id: UUID | str | None
    parent_id: UUID | str | None
    retry_of: UUID | str | None
    tenant_id: int | None
    worker_id: UUID | str | None
    tag: str | None
    error_class: str | None
    idempotency_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """The conditions that jobs must meet; None means any.

    The fields are the first parameters of every statement that filters jobs, in this order.
    """

    statuses: tuple[Status, ...] | None = None
    job_type: str | None = None
    queue: str | None = None
    priority: int | None = None
    # Created at or after, and before.
    since: datetime | None = None
    until: datetime | None = None
    category: str | None = None
    correlation_id: UUID | None = None
    parent_id: UUID | None = None
    retry_of: UUID | None = None
    tenant_id: int | None = None
    # The worker that claimed them last.
    worker_id: UUID | None = None
    tag: str | None = None
    error_class: str | None = None
    idempotency_key: str | None = None

    @classmethod
    def of(cls, criteria: JobCriteria) -> Self:
        """Check the conditions, or say what is allowed."""
        if unknown := criteria.keys() - JobCriteria.__annotations__.keys():
            hint = suggestion(min(unknown), JobCriteria.__annotations__, "it")
            raise InvalidValue(f"a filter of jobs has no condition {min(unknown)!r}; {hint}")
        get: Callable[[str], Any] = criteria.get
        priority = get("priority")
        return cls(
            statuses=_statuses(get("status"), get("state")),
            job_type=_name(get("type"), "type"),
            queue=_name(get("queue"), "queue"),
            priority=None if priority is None else parse_priority(priority),
            since=_moment(get("since"), "since"),
            until=_moment(get("until"), "until"),
            category=_one_of(get("category"), "category", tuple(CATEGORIES)),
            correlation_id=parse_uuid(get("correlation_id"), "correlation_id"),
            parent_id=parse_uuid(get("parent_id"), "parent_id"),
            retry_of=parse_uuid(get("retry_of"), "retry_of"),
            tenant_id=check_tenant(get("tenant_id")),
            worker_id=parse_uuid(get("worker_id"), "worker_id"),
            tag=_name(get("tag"), "tag"),
            error_class=_one_of(get("error_class"), "error_class", get_args(ErrorClass)),
            idempotency_key=_name(get("idempotency_key"), "idempotency_key"),
        )

    @property
    def is_empty(self) -> bool:
        """Whether every job matches."""
        return all(getattr(self, field.name) is None for field in fields(self))

    @property
    def first_id(self) -> UUID:
        """The smallest id that a job created at `since` can have."""
        return OLDEST if self.since is None else id_at(self.since - CLOCK_SKEW)

    @property
    def end_id(self) -> UUID:
        """An id above those of all jobs created before `until`."""
        return NEWEST if self.until is None else id_at(self.until + CLOCK_SKEW)


class InputValue(NamedTuple):
    """A condition on a value in the input, such as `order_id` = `42`.

    A path names keys and places in lists, separated by dots; a list without a place stands for
    each of its items. Numbers, booleans and null are compared as they are written in JSON.
    """

    path: str
    value: str

    @classmethod
    def all_of(cls, values: Mapping[str, object]) -> list[Self]:
        """Return a condition for each path; a value is a text, a number, a boolean or None."""
        return [cls(path, _input_text(path, value)) for path, value in values.items()]

    def matches(self, input: Any) -> bool:
        """Whether a redacted input has the value."""
        found = _values_at(input, self.path.split("."))
        return any(_scalar_text(value) == self.value for value in found)


def id_at(moment: datetime) -> UUID:
    """Return the smallest id of a given time."""
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)


def moment_of(job_id: UUID) -> int:
    """Return the time in an id, in milliseconds since the epoch."""
    return job_id.int >> 80


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _values_at(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Yield what a path leads to; each part of the input is visited at most once."""
    if isinstance(value, list):
        if steps and steps[0].isdecimal():
            value, steps = value[int(steps[0]) :][:1], steps[1:]
        for item in value:
            yield from _values_at(item, steps)
    elif not steps:
        yield value
    elif isinstance(value, dict) and steps[0] in value:
        yield from _values_at(value[steps[0]], steps[1:])


def _input_text(path: str, value: object) -> str:
    if (text := _scalar_text(value)) is None:
        raise InvalidValue(
            f"input {path!r} is compared with a text, number, boolean or None, not "
            f"{type(value).__name__}; write the path of the value inside"
        )
    return text


def _scalar_text(value: Any) -> str | None:
    if isinstance(value, dict | list | tuple):
        return None
    return value if isinstance(value, str) else encode(value)


def _statuses(
    wanted: Status | str | Collection[Status | str] | None, state: State | str | None
) -> tuple[Status, ...] | None:
    if wanted is None and state is None:
        return None
    given = [wanted] if isinstance(wanted, str) else wanted
    named = None if given is None else {_one_of(one, "status", tuple(Status)) for one in given}
    of_state = _one_of(state, "state", tuple(State))
    return tuple(
        status
        for status in Status
        if (named is None or status in named) and of_state in (None, status.state)
    )


def _one_of(value: str | None, what: str, allowed: Sequence[str]) -> str | None:
    if value is None or value in allowed:
        return value
    raise InvalidValue(f"{what} must be one of {', '.join(allowed)}, not {value!r}")


def _name(value: object, what: str) -> str | None:
    return None if value is None else check_name(value, what=what)


def _moment(value: object, what: str) -> datetime | None:
    return None if value is None else check_moment(value, what)
