"""Times and intervals as PostgreSQL stores them, which reach further than those of Python."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_INFINITY = 2**63 - 1


async def read_all_times(connection: "asyncpg.Connection[Any]") -> None:
    """Read what Python cannot hold as the nearest that it can, so that every row is readable."""
    for name, encoder, decoder in (
        ("timestamptz", _encode_time, _decode_time),
        ("interval", _encode_interval, _decode_interval),
    ):
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=encoder, decoder=decoder, format="tuple"
        )


def _encode_time(time: datetime) -> tuple[int]:
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone")
    if time == _LAST:
        return (_INFINITY,)
    if time == _FIRST:
        return (-_INFINITY - 1,)
    return ((time - _EPOCH) // _MICROSECOND,)


def _decode_time(stored: tuple[int]) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=stored[0])
    except OverflowError:
        return _LAST if stored[0] > 0 else _FIRST


def _encode_interval(interval: timedelta) -> tuple[int, int, int]:
    return 0, interval.days, (interval - timedelta(interval.days)) // _MICROSECOND


def _decode_interval(stored: tuple[int, int, int]) -> timedelta:
    months, days, microseconds = stored
    years = int(months / 12)
    # Years and months have the lengths that asyncpg gives them.
    days += years * 365 + (months - years * 12) * 30
    try:
        return timedelta(days, microseconds=microseconds)
    except OverflowError:
        return timedelta.max if days > 0 else timedelta.min
