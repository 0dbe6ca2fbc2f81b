"""Which idle workers a wake-up is for: enough to do the work, not all of them."""

import zlib
from collections.abc import Sequence
from uuid import UUID

# Workers woken in excess of the jobs: some of them may be busy or gone by now.
SPARE = 2
# Digits of a number in a wake-up.
MAX_DIGITS = 18
EVERYONE = ""


REQUEST = "request"


def call(jobs: int, nonce: int, *, is_request: bool = False) -> str:
    """Write the wake-up for this many new jobs; the nonce decides which workers it is for.

    A request is for workers without a free slot, too.
    """
    return f"{jobs} {nonce} {REQUEST}" if is_request else f"{jobs} {nonce}"


def is_for_request(payload: str) -> bool:
    """Whether a request may be among the new jobs."""
    return not payload or payload.endswith(REQUEST)


def is_called(payload: str, worker: UUID, peers: Sequence[UUID]) -> bool:
    """Whether a wake-up is for this worker, among those that serve the same jobs.

    All workers agree without asking each other: the nonce gives each the same order of workers.
    """
    words = payload.removesuffix(REQUEST).split()
    if len(words) != 2 or not all(word.isdecimal() and len(word) <= MAX_DIGITS for word in words):
        return True  # also for what only looks like a wake-up: any login can notify
    wanted = int(words[0]) + SPARE
    if len(peers) <= wanted:
        return True
    lots = sorted(peers, key=lambda peer: zlib.crc32(peer.bytes, int(words[1])))
    return worker in lots[:wanted] or worker not in peers
