"""A validated job to insert: dispatch options merged with the job type's defaults."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypedDict, TypeGuard
from uuid import UUID

from forge.core.duration import parse_duration
from forge.core.equivalents import OPTIONS
from forge.core.errors import InvalidValue
from forge.core.job import Priority, PriorityLike
from forge.core.job_type import JobType
from forge.core.payload import encode
from forge.core.suggestion import suggestion

LONGEST_NAME = 255
LONGEST_VERSION = 32
LONGEST_REASON = 1000
FIRST_VERSION = "1.0"
# When a job is to run: at a time, or so long from now.
When = datetime | timedelta | str


class DispatchOptions(TypedDict, total=False):
    """What `dispatch` takes beside the input."""

    priority: PriorityLike
    scheduled_at: datetime
    delay: timedelta | str
    idempotency_key: str
    tenant_id: int
    correlation_id: UUID | str
    queue: str
    tags: Sequence[str]
    expires_at: datetime
    parent_id: UUID | None
    retry_of: UUID
    auth: dict[str, Any]
    meta: dict[str, Any]
    payload_version: str
    traceparent: str


class RequestOptions(TypedDict, total=False):
    """What the requests that take a priority or a queue of their own leave of the options."""

    scheduled_at: datetime
    delay: timedelta | str
    idempotency_key: str
    tenant_id: int
    correlation_id: UUID | str
    auth: dict[str, Any]
    meta: dict[str, Any]


class NewJob(NamedTuple):
    """A validated job to insert: dispatch options merged with the job type's defaults.

    Its fields are the columns that all jobs of one dispatch share, and `delay`. They are the
    parameters of the dispatch statements in this order: a new one comes last.
    """

    job_type: str
    priority: int
    max_attempts: int
    queue: str
    worker_capability: str | None
    scheduled_at: datetime | None = None
    delay: timedelta | None = None
    tenant_id: int | None = None
    category: str | None = None
    correlation_id: UUID | None = None
    payload_version: str = FIRST_VERSION
    auth: str | None = None
    traceparent: str | None = None
    expires_at: datetime | None = None
    retry_of: UUID | None = None
    parent_id: UUID | None = None
    tags: list[str] | None = None
    meta: str | None = None

    def has_only(self, names: tuple[str, ...]) -> bool:
        """Whether every field but these has its default."""
        rest, defaults = _rest(names)
        return bool(rest(self) == defaults)


@cache
def _rest(names: tuple[str, ...]) -> tuple[Callable[[NewJob], Any], tuple[Any, ...]]:
    rest = [name for name in NewJob._fields if name not in names]
    return attrgetter(*rest), tuple(NewJob._field_defaults[name] for name in rest)


def make_new_job(
    job_type: JobType, options: DispatchOptions, parent_id: UUID | None = None
) -> NewJob:
    """Check the options and fill in what the type says, or say what is allowed.

    `parent_id` is the job whose handler dispatches, for options that name no parent.
    """
    if not options:
        return _new_job_without_options(job_type, parent_id)
    if unknown := options.keys() - DispatchOptions.__annotations__.keys():
        given = min(unknown)
        hint = OPTIONS.get(given) or suggestion(given, DispatchOptions.__annotations__, "it")
        raise InvalidValue(f"dispatch has no option {given!r}; {hint}")
    if "scheduled_at" in options and "delay" in options:
        raise InvalidValue("a job has either scheduled_at or delay, not both; leave one out")
    return _new_job(job_type, options, parent_id)


@lru_cache(maxsize=1000)
def _new_job_without_options(job_type: JobType, parent_id: UUID | None) -> NewJob:
    return _new_job(job_type, {}, parent_id)


def _new_job(job_type: JobType, options: DispatchOptions, parent_id: UUID | None) -> NewJob:
    priority = options.get("priority")
    delay = options.get("delay")
    return NewJob(
        job_type=job_type.name,
        priority=job_type.priority if priority is None else parse_priority(priority),
        max_attempts=job_type.max_attempts,
        queue=check_name(options.get("queue", job_type.queue), what="queue"),
        worker_capability=job_type.worker_capability,
        scheduled_at=parse_moment(options.get("scheduled_at"), "scheduled_at"),
        delay=None if delay is None else parse_duration(delay, what="delay", allow_zero=True),
        tenant_id=check_tenant(options.get("tenant_id")),
        category=job_type.category,
        correlation_id=parse_uuid(options.get("correlation_id"), "correlation_id"),
        payload_version=check_version(options.get("payload_version", FIRST_VERSION)),
        auth=_object(options.get("auth"), "auth"),
        traceparent=_text(options.get("traceparent"), "traceparent"),
        expires_at=parse_moment(options.get("expires_at"), "expires_at"),
        retry_of=parse_uuid(options.get("retry_of"), "retry_of"),
        parent_id=parse_uuid(options.get("parent_id", parent_id), "parent_id"),
        tags=_tags(options.get("tags")),
        meta=_object(options.get("meta"), "meta"),
    )


def parse_priority(value: object) -> int:
    """Read a priority by its name or its value."""
    if isinstance(value, str) and value.upper() in Priority.__members__:
        return int(Priority[value.upper()])
    if isinstance(value, int) and not isinstance(value, bool) and value in set(Priority):
        return int(value)
    allowed = ", ".join(f'"{p.name.lower()}" ({p.value})' for p in Priority)
    raise InvalidValue(f"priority must be one of {allowed}, not {value!r}")


def check_name(value: object, *, what: str, longest: int = LONGEST_NAME) -> str:
    """Reject a name that is empty, too long, or has control characters."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue(f"{what} must be text that is not empty, not {value!r}")
    if len(value) > longest:
        raise InvalidValue(f"{what} must have at most {longest} characters, not {len(value)}")
    if _CONTROL.search(value):
        raise InvalidValue(
            f"{what} {value!r} has a control character or a lone surrogate; remove it"
        )
    return value


def check_reason(reason: str | None) -> str | None:
    """Refuse a reason that cannot be stored; it may have several lines."""
    if reason is None or not reason.strip():
        return None
    check_name(" ".join(reason.split()), what="reason", longest=LONGEST_REASON)
    return reason.strip()


def check_version(value: object) -> str:
    """Refuse what cannot be the version of a payload."""
    return check_name(value, what="payload_version", longest=LONGEST_VERSION)


def check_tenant(value: object) -> int | None:
    """Refuse a tenant that a bigint cannot hold."""
    if value is None or is_tenant(value):
        return value
    raise InvalidValue(f"tenant_id must be a whole number of 64 bits, not {value!r}")


def is_tenant(value: object) -> TypeGuard[int]:
    """Whether a bigint can hold it."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def parse_uuid(value: object, what: str) -> UUID | None:
    """Read an id where one is given, or say what is wrong with it."""
    return None if value is None else check_uuid(value, what)


def check_uuid(value: object, what: str = "job_id") -> UUID:
    """Read an id, or say what is wrong with it."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidValue(f"{what} must be a UUID, not {value!r}") from None


def check_dict(value: object, what: str) -> dict[str, Any]:
    """Refuse what is not a dict."""
    if not isinstance(value, dict):
        # The message leaves out the value: it may be a secret.
        raise InvalidValue(
            f"{what} must be a dict such as {{'name': …}}, not {type(value).__name__}"
        )
    return value


def parse_moment(value: object, what: str) -> datetime | None:
    """Read a point in time where one is given, or say what is wrong with it."""
    return None if value is None else check_moment(value, what)


FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = datetime(9000, 12, 31, 23, 59, 59, tzinfo=UTC)


def check_moment(value: object, what: str) -> datetime:
    """Refuse what is not a point in time at which something could run."""
    if not isinstance(value, datetime):
        raise InvalidValue(
            f"{what} must be a datetime, not {value!r}; use datetime.now(timezone.utc) + "
            "timedelta(…)"
        )
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidValue(f"{what} {value} has no time zone; use datetime.now(timezone.utc)")
    if not FIRST_MOMENT <= value <= LAST_MOMENT:
        raise InvalidValue(f"{what} {value} is not a time to run at; use a year from 1970 to 9000")
    return value


_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def _object(value: object, what: str) -> str | None:
    return None if value is None else encode(check_dict(value, what), what=what)


def _text(value: object, what: str) -> str | None:
    return None if value is None else check_name(value, what=what)


def _tags(value: Sequence[str] | None) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple | set | frozenset):
        raise InvalidValue(f"tags must be a list of texts, not {value!r}; write [{value!r}]")
    return [check_name(tag, what="a tag") for tag in value]
