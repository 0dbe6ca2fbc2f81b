"""What a handler may raise to say what is to become of its job, or of its call."""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from forge.core.duration import format_duration, parse_duration
from forge.core.errors import Fault, ForgeError, InvalidValue


class Snooze(ForgeError):
    """Raised by a handler to give its job back for a while, without using up an attempt."""

    def __init__(self, delay: timedelta | str) -> None:
        self.delay = parse_duration(delay, what="Snooze(delay)")
        super().__init__(f"snoozed for {format_duration(self.delay)}")


class ClassifiedError(ForgeError):
    """An error that says itself how it is to be retried."""

    error_class: ClassVar[str]
    # A subclass may have an __init__ of its own that leaves this one out.
    _retry_after: timedelta | None = None

    def __init__(self, message: str = "", *, retry_after: timedelta | str | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def retry_after(self) -> timedelta | None:
        """When to come back, where somebody said so."""
        return self._retry_after

    @retry_after.setter
    def retry_after(self, value: timedelta | str | None) -> None:
        self._retry_after = None if value is None else parse_duration(value, what="retry_after")


class Transient(ClassifiedError):
    """Something that goes away by itself: a dropped connection, a deadlock."""

    error_class = "transient"


class Retryable(ClassifiedError):
    """Something that may go better the next time."""

    error_class = "retryable"


class RateLimited(ClassifiedError):
    """Somebody asked us to come back later."""

    error_class = "rate_limited"


class NonRetryable(ClassifiedError):
    """Something that another attempt cannot mend."""

    error_class = "non_retryable"


class Rejected(ForgeError):
    """Raised by a mutation or an action to answer its caller no, with an HTTP status of 4xx.

    `faults` says what is wrong where in the input: `{"$.email": "is taken"}`.
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
                f"Rejected(status={status!r}): a status from 400 to 499 tells a caller no; for a "
                "fault of the server let the error pass"
            )
        super().__init__(detail)
        self.status = status
        self.code = code
        self.faults = tuple(Fault(path, message) for path, message in (faults or {}).items())
