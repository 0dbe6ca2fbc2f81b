"""PostgreSQL's binary format of the values that COPY brings into forge_jobs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct
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
_TEXT_OID = 25


def field(value: bytes) -> bytes:
    """Write a value with its length before it."""
    return size(len(value)) + value


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
