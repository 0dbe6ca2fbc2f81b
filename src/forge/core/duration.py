"""Parses and formats durations such as "30s", "5m", "2h", "1000ms" and "7d"."""

import re
import reprlib
from datetime import timedelta

from forge.core.errors import InvalidValue

# The longest accepted duration: a century. Deadlines are now plus a duration, and much longer ones
# overflow Python's datetime.
MAX_DURATION = timedelta(days=36_500)


def parse_duration(value: object, *, what: str = "timeout", allow_zero: bool = False) -> timedelta:
    """Return a duration from text such as "30s" or a timedelta; raise InvalidValue if invalid."""
    duration = value if isinstance(value, timedelta) else _read(value, what)
    if duration < timedelta(0) or (not duration and not allow_zero):
        bound = "zero or more" if allow_zero else "more than zero"
        raise InvalidValue(f"{what} must be {bound}, not {_shown(value)}; {ALLOWED}")
    if duration > MAX_DURATION:
        raise _too_long(value, what)
    return duration


def format_duration(duration: timedelta) -> str:
    """Return a duration in its shortest exact form, which parse_duration accepts."""
    sign = "-" if duration < timedelta(0) else ""
    duration = abs(duration)
    if not duration:
        return "0s"
    for unit, length in reversed(UNITS.items()):
        count, rest = divmod(duration, length)
        if not rest:
            return f"{sign}{count}{unit}"
    raise AssertionError("every timedelta is a whole number of microseconds")


def approximate(seconds: float) -> str:
    """Return a duration as people say it, in whole units.

    >>> approximate(0.4), approximate(42), approximate(150), approximate(9000), approximate(2e5)
    ('less than a second', '42 s', '2 min', '2 h 30 min', '2 days 7 h')
    """
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    hours, days = minutes // 60, minutes // 1440
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} days {hours % 24} h" if hours % 24 else f"{days} days"


UNITS = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
ALLOWED = (
    'write a whole number and a unit (ms, s, m, h or d), such as "30s", "5m", "2h", "1000ms" '
    'or "7d", or pass a timedelta'
)
_WRITTEN = re.compile(r"(-?)0*([0-9]+)(us|ms|s|m|h|d)")
# More digits than this overflow in every unit, and int() refuses very long numbers.
_MAX_DIGITS = 18


def _read(value: object, what: str) -> timedelta:
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise InvalidValue(f"{what} {_shown(value)} is not a duration; {ALLOWED}")
    sign, digits, unit = written.groups()
    if len(digits) > _MAX_DIGITS:
        raise _too_long(value, what)
    try:
        duration = int(digits) * UNITS[unit]
    except OverflowError:
        raise _too_long(value, what) from None
    return -duration if sign else duration


def _too_long(value: object, what: str) -> InvalidValue:
    longest = format_duration(MAX_DURATION)
    return InvalidValue(f"{what} must be at most {longest}, not {_shown(value)}; shorten it")


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    return reprlib.repr(value)
