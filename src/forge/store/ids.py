"""UUIDs of version 7 in bulk, in order, so that jobs of one dispatch are stored together."""

import os
import time
from collections.abc import Iterator
from itertools import count

from asyncpg.pgproto.pgproto import UUID

VERSION = 0x7 << 76
VARIANT = 0x2 << 62
# The random part starts low enough to be incremented without overflowing into the variant bits.
COUNTABLE = (1 << 61) - 1


def new_id() -> UUID:
    """Return an id that sorts by its creation time."""
    return UUID(_seed().to_bytes(16, "big"))


def new_ids() -> Iterator[UUID]:
    """Yield an endless sequence of ids, each greater than the one before."""
    for number in count(_seed()):
        yield UUID(number.to_bytes(16, "big"))


def new_id_bytes() -> Iterator[bytes]:
    """Yield the same as bytes, for COPY."""
    for number in count(_seed()):
        yield number.to_bytes(16, "big")


def _seed() -> int:
    random = int.from_bytes(os.urandom(10), "big")
    milliseconds = time.time_ns() // 1_000_000
    return milliseconds << 80 | VERSION | (random >> 68) << 64 | VARIANT | random & COUNTABLE
