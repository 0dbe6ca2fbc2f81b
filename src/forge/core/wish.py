"""A wish: what somebody who dispatches asks for, checked and joined with what the type says."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypedDict, TypeGuard
from uuid import UUID

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue
from forge.core.job import Priority, PriorityLike
from forge.core.payload import encode
from forge.core.suggestion import suggestion

LONGEST_NAME = 255
LONGEST_VERSION = 32
FIRST_VERSION = "1.0"
Isolation = Literal["none", "process"]


class TypeDefaults(NamedTuple):
    """What a job type says about each of its jobs, wherever its code lives."""

    name: str
    queue: str = "default"
    priority: int = Priority.NORMAL
    max_attempts: int = 3
    worker_capability: str | None = None
    category: str | None = None
    # Fields that each payload has; None: what its category says
    requires: tuple[str, ...] | None = None
    # None: no key of its own; "input": the whole input; "input.a.b": what lies there
    idempotent: str | Callable[[Any], str] | None = None
    # Names and paths that may lie in a payload although they look sensitive
    allow_sensitive: tuple[str, ...] = ()


class Options(TypedDict, total=False):
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
    parent_id: UUID
    retry_of: UUID
    auth: dict[str, Any]
    meta: dict[str, Any]
    payload_version: str
    traceparent: str


class Wish(NamedTuple):
    """The options of a dispatch in the order of jobs/dispatch's parameters from $3 on."""

    job_type: str
    priority: int
    max_attempts: int
    queue: str
    worker_capability: str | None
    scheduled_at: datetime | None
    delay: timedelta | None
    tenant_id: int | None
    category: str | None
    correlation_id: UUID | None
    payload_version: str
    auth: str | None
    traceparent: str | None
    expires_at: datetime | None
    retry_of: UUID | None
    parent_id: UUID | None
    tags: list[str] | None
    meta: str | None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked for beyond what the type says, but for a delay."""
        return self.scheduled_at is None and self[7:] == PLAIN


PLAIN = (None, None, None, FIRST_VERSION, *[None] * 7)


def make_wish(kind: TypeDefaults, options: Options) -> Wish:
    """Check the options and fill in what the type says, or say what is allowed."""
    if not options:
        return _wish_without_options(kind)
    if unknown := options.keys() - Options.__annotations__.keys():
        hint = suggestion(min(unknown), Options.__annotations__, "it")
        raise InvalidValue(f"dispatch has no option {min(unknown)!r}; {hint}")
    if "scheduled_at" in options and "delay" in options:
        raise InvalidValue("a job has either scheduled_at or delay, not both; leave one out")
    return _wish(kind, options)


@lru_cache(maxsize=1000)
def _wish_without_options(kind: TypeDefaults) -> Wish:
    return _wish(kind, {})


def _wish(kind: TypeDefaults, options: Options) -> Wish:
    priority = options.get("priority")
    delay = options.get("delay")
    return Wish(
        kind.name,
        kind.priority if priority is None else parse_priority(priority),
        kind.max_attempts,
        check_name(options.get("queue", kind.queue), what="queue"),
        kind.worker_capability,
        parse_moment(options.get("scheduled_at"), "scheduled_at"),
        None if delay is None else parse_duration(delay, what="delay", allow_zero=True),
        check_tenant(options.get("tenant_id")),
        kind.category,
        parse_uuid(options.get("correlation_id"), "correlation_id"),
        check_version(options.get("payload_version", FIRST_VERSION)),
        _object(options.get("auth"), "auth"),
        _text(options.get("traceparent"), "traceparent"),
        parse_moment(options.get("expires_at"), "expires_at"),
        parse_uuid(options.get("retry_of"), "retry_of"),
        parse_uuid(options.get("parent_id"), "parent_id"),
        _tags(options.get("tags")),
        _object(options.get("meta"), "meta"),
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
    """Refuse what cannot be a name: empty, too long, or with characters nobody can type."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue(f"{what} must be text that is not empty, not {value!r}")
    if len(value) > longest:
        raise InvalidValue(f"{what} must have at most {longest} characters, not {len(value)}")
    if _CONTROL.search(value):
        raise InvalidValue(
            f"{what} {value!r} has a control character or a lone surrogate; remove it"
        )
    return value


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
        # What it holds is not told: it may be a secret.
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
