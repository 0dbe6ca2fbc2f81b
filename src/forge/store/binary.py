"""PostgreSQL's binary format of the values that COPY brings into forge_jobs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any
from uuid import UUID

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"

size = int4 = Struct("!i").pack
int8 = Struct("!q").pack
begin_row = Struct("!h").pack
UUID_SIZE = size(16)

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ARRAY = Struct("!iiiii").pack
_INTERVAL = Struct("!qii").pack
_TEXT_OID = 25


def field(value: bytes) -> bytes:
    """Write a value with its length before it."""
    return size(len(value)) + value


def encoder(type_: str) -> Callable[[Any], bytes]:
    """Return what writes the values of a type of PostgreSQL, such as `varchar(255)`."""
    return _ENCODERS[type_.partition("(")[0]]


def text(value: str) -> bytes:
    return value.encode()


def boolean(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def interval(value: timedelta) -> bytes:
    return _INTERVAL(value // _MICROSECOND, 0, 0)


def uuid(value: UUID) -> bytes:
    return value.bytes


def timestamptz(value: datetime) -> bytes:
    return int8((value - _EPOCH) // _MICROSECOND)


def jsonb(text: str) -> bytes:
    return b"\1" + text.encode()


def texts(values: Sequence[str]) -> bytes:
    """Write a text[] of one dimension."""
    fields = b"".join(field(value.encode()) for value in values)
    return _ARRAY(1, 0, _TEXT_OID, len(values), 1) + fields


_ENCODERS: Mapping[str, Callable[[Any], bytes]] = {
    "boolean": boolean,
    "integer": int4,
    "bigint": int8,
    "text": text,
    "varchar": text,
    "uuid": uuid,
    "timestamptz": timestamptz,
    "interval": interval,
    "jsonb": jsonb,
    "text[]": texts,
}
