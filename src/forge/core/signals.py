"""Exceptions that a handler raises to control what happens to its job or call."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from forge.core.duration import format_duration, parse_duration
from forge.core.errors import Fault, ForgeError, InvalidValue


class Snooze(ForgeError):
    """Raised by a handler to run its job again later, without using an attempt."""

    def __init__(self, delay: timedelta | str) -> None:
        self.delay = parse_duration(delay, what="Snooze(delay)")
        super().__init__(f"snoozed for {format_duration(self.delay)}")


class ClassifiedError(ForgeError):
    """An error that determines how its job is retried."""

    error_class: ClassVar[str]
    # A subclass may have its own __init__ that does not call this one.
    _retry_after: timedelta | None = None

    def __init__(self, message: str = "", *, retry_after: timedelta | str | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def retry_after(self) -> timedelta | None:
        """The delay before the retry, if one was given."""
        return self._retry_after

    @retry_after.setter
    def retry_after(self, value: timedelta | str | None) -> None:
        self._retry_after = None if value is None else parse_duration(value, what="retry_after")


class Transient(ClassifiedError):
    """A temporary error, such as a dropped connection or a deadlock."""

    error_class = "transient"


class Retryable(ClassifiedError):
    """An error that may not occur on the next attempt."""

    error_class = "retryable"


class RateLimited(ClassifiedError):
    """Another service asked to be called again later."""

    error_class = "rate_limited"


class NonRetryable(ClassifiedError):
    """An error that another attempt cannot fix."""

    error_class = "non_retryable"


class Rejected(ForgeError):
    """Raised by a mutation or an action to reject a call with an HTTP status of 4xx.

    `faults` maps paths in the input to what is wrong there: `{"$.email": "is taken"}`.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 409,
        code: str | None = None,
        faults: Mapping[str, str] | None = None,
    ) -> None:
        if not 400 <= status <= 499:
            raise InvalidValue(
                f"Rejected(status={status!r}): the status must be from 400 to 499; for a server "
                "error raise any other exception"
            )
        super().__init__(detail)
        self.status = status
        self.code = code
        self.faults = tuple(Fault(path, message) for path, message in (faults or {}).items())
