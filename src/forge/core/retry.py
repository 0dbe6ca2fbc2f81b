"""Retry policies, and the delay before a failed attempt is retried."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue

Backoff = Literal["fixed", "linear", "exponential"]
ErrorClass = Literal["transient", "retryable", "rate_limited", "non_retryable"]

FIRST_DELAY = 1.0
CLASSIFIED_CAP = 300.0
RATE_LIMITED_FIRST = 60.0
MAX_ATTEMPTS = 1_000_000
MAX_DELAY = timedelta(days=365).total_seconds()


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """How often and how soon a failed job is retried.

    >>> Retry(max_attempts=5, backoff="linear", max_backoff="10m").seconds_after(3)
    3.0
    """

    max_attempts: int | None
    backoff: Backoff
    max_backoff: timedelta

    def __init__(
        self,
        max_attempts: int | None = None,
        backoff: Backoff = "exponential",
        max_backoff: timedelta | str = "5m",
    ) -> None:
        if backoff not in get_args(Backoff):
            allowed = ", ".join(repr(name) for name in get_args(Backoff))
            raise InvalidValue(f"backoff must be one of {allowed}, not {backoff!r}")
        if max_attempts is not None:
            check_max_attempts(max_attempts)
        object.__setattr__(self, "max_attempts", max_attempts)
        object.__setattr__(self, "backoff", backoff)
        object.__setattr__(self, "max_backoff", parse_duration(max_backoff, what="max_backoff"))

    def seconds_after(self, attempt: int) -> float:
        """Return the delay after this attempt, counted from 1, without jitter."""
        match self.backoff:
            case "fixed":
                delay = FIRST_DELAY
            case "linear":
                delay = FIRST_DELAY * attempt
            case "exponential":
                delay = FIRST_DELAY * 2.0 ** min(attempt - 1, 64)
        return min(delay, self.max_backoff.total_seconds())


def retry_delay(
    attempt: int,
    *,
    declared: Retry | None,
    error_class: str | None,
    retry_after: timedelta | None,
    chance: float,
) -> float:
    """Return the seconds to wait; `chance` in [0, 1) spreads jobs that failed together.

    `retry_after` takes precedence, then the delay of rate limits, then a declared policy.
    """
    if retry_after is not None:
        return min(retry_after.total_seconds(), MAX_DELAY)
    if error_class == "rate_limited":
        return min(RATE_LIMITED_FIRST * 2.0 ** min(attempt - 1, 64), MAX_DELAY)
    if error_class is None or declared is not None:
        policy = declared or Retry()
        return policy.seconds_after(attempt) * (1 + 0.1 * chance)
    return min(2.0 ** min(attempt, 64) * (0.8 + 0.4 * chance), CLASSIFIED_CAP)


def check_max_attempts(max_attempts: object) -> int:
    """Return a number of attempts, or raise InvalidValue if it is out of range."""
    is_number = isinstance(max_attempts, int) and not isinstance(max_attempts, bool)
    if not is_number or not 1 <= max_attempts <= MAX_ATTEMPTS:  # type: ignore[operator]
        raise InvalidValue(
            f"max_attempts must be a whole number from 1 to {MAX_ATTEMPTS:,}, not {max_attempts!r}"
        )
    return max_attempts  # type: ignore[return-value]
