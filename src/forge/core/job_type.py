"""A job type: its attributes, as `forge_job_types` stores them for every process."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Self

from forge.core.duration import format_duration
from forge.core.errors import InvalidValue, UndecodablePayload
from forge.core.job import Priority
from forge.core.payload import decode, encode
from forge.core.retry import Retry

Isolation = Literal["none", "process"]
# Values of `JobType.idempotent` beside a path such as "input.payment_id": the key is made of the
# whole input, or by a function. Only a process that has the code of the type has the function.
BY_INPUT = "input"
BY_FUNCTION = "function"


class JobType(NamedTuple):
    """The attributes of a job type, wherever its code lives.

    The fields are the parameters of job_types/register, in their order.
    """

    name: str
    queue: str = "default"
    priority: int = Priority.NORMAL
    max_attempts: int = 3
    timeout: timedelta = timedelta(hours=1)
    worker_capability: str | None = None
    category: str | None = None
    # Fields that every payload must have; None: the fields of the category.
    requires: tuple[str, ...] | None = None
    # Keys and paths that a payload may contain although they look sensitive.
    allow_sensitive: tuple[str, ...] = ()
    # The source of the idempotency key: None, BY_INPUT, a path "input.a.b", or a function.
    idempotent: str | Callable[[Any], str] | None = None
    dead_letter: bool = True
    isolation: Isolation = "none"
    retry: Retry | None = None
    # JSON Schemas as text; None: any JSON.
    input_schema: str | None = None
    output_schema: str | None = None
    # The docstring of its handler.
    description: str | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a row of forge_job_types, or of forge_schedule_types, which has fewer columns."""
        values = {name: value for name, value in dict(row).items() if name in cls._fields}
        return cls(**{name: _READERS.get(name, _same)(value) for name, value in values.items()})

    def as_row(self) -> dict[str, Any]:
        """Return the columns of its row; lists, the retry policy and schemas as JSON text."""
        requires, retry = self.requires, self.retry
        return self._asdict() | {
            "requires": None if requires is None else encode(list(requires)),
            "allow_sensitive": encode(list(self.allow_sensitive)),
            "idempotent": BY_FUNCTION if callable(self.idempotent) else self.idempotent,
            "retry": None if retry is None else encode(_retry_columns(retry)),
        }


def _same(value: Any) -> Any:
    return value


def _texts(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _retry_columns(retry: Retry) -> dict[str, str]:
    # Its max_attempts is a column of its own.
    return {"backoff": retry.backoff, "max_backoff": format_duration(retry.max_backoff)}


def _retry(value: Any) -> Retry | None:
    """Read a stored retry policy; None for one that only a newer version knows."""
    try:
        return None if value is None else Retry(**(decode(value) if _is_text(value) else value))
    except (InvalidValue, TypeError, UndecodablePayload):
        return None


def _json_text(value: Any) -> str | None:
    return value if value is None or _is_text(value) else encode(value, what="a schema")


def _is_text(value: Any) -> bool:
    # Drivers differ: some return jsonb as text, some as Python values.
    return isinstance(value, str)


_READERS: dict[str, Callable[[Any], Any]] = {
    "requires": _texts,
    "allow_sensitive": _texts,
    "retry": _retry,
    "input_schema": _json_text,
    "output_schema": _json_text,
}
