"""What a handler may raise to say what is to become of its job."""

from datetime import timedelta
from typing import ClassVar

from forge.core.duration import format_duration, parse_duration
from forge.core.errors import ForgeError


class Snooze(ForgeError):
    """Raised by a handler to give its job back for a while, without using up an attempt."""

    def __init__(self, delay: timedelta | str) -> None:
        self.delay = parse_duration(delay, what="Snooze(delay)")
        super().__init__(f"snoozed for {format_duration(self.delay)}")


class ClassifiedError(ForgeError):
    """An error that says itself how it is to be retried."""

    error_class: ClassVar[str]

    def __init__(self, message: str = "", *, retry_after: timedelta | str | None = None) -> None:
        super().__init__(message)
        self.retry_after = (
            None if retry_after is None else parse_duration(retry_after, what="retry_after")
        )


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
