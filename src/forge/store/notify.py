"""Channels: hints that somebody should look. One may be lost; a poll stands behind each."""

from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

from forge.store.statement import Statement, load, nothing

WAKE = "forge_wake"
CHANGES = "forge_changes"
# PostgreSQL takes payloads of less than 8000 bytes; past this many ids "look at all" is said.
MOST_IDS = 200


def send(channel: str, payload: str = "") -> Statement[None]:
    return Statement(load("notify/send"), (channel, payload), nothing)


def worker_channel(worker: UUID) -> str:
    """Return the channel on which one worker hears its own knocking and what concerns it alone."""
    return f"forge_worker_{worker.hex}"


def attempt_payload(job_id: UUID, lease: int) -> str:
    """Name an attempt that is over, to the worker that runs it."""
    return f"{job_id.hex} {lease}"


def named_attempt(payload: str) -> tuple[UUID, int] | None:
    """Read which attempt may be over; None for anything else, since any login can notify."""
    words = payload.split()
    try:
        return UUID(hex=words[0]), int(words[1])
    except (ValueError, IndexError):
        return None


def changes_payload(job_ids: set[UUID]) -> str:
    """Name the jobs that changed, or none when there are too many to name."""
    return "" if len(job_ids) > MOST_IDS else " ".join(job_id.hex for job_id in job_ids)


def changed_ids(payload: str) -> set[UUID] | None:
    """Read which jobs changed; None means any. What is no id is ignored: any login can notify."""
    return set(_ids(payload.split())) if payload else None


def _ids(words: list[str]) -> Iterator[UUID]:
    for word in words:
        with suppress(ValueError):
            yield UUID(hex=word)
