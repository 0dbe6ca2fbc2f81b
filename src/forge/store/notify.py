"""Notification channels and payloads; notifications may be lost, so readers also poll."""

from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

from forge.store.statement import Statement, load, nothing

WAKE = "forge_wake"
CHANGES = "forge_changes"
# PostgreSQL limits payloads to 8000 bytes; with more ids the payload is empty: "check all".
MAX_IDS = 200


def send(channel: str, payload: str = "") -> Statement[None]:
    return Statement(load("notify/send"), (channel, payload), nothing)


def worker_channel(worker: UUID) -> str:
    """Return the channel of one worker, for its test notifications and its own attempts."""
    return f"forge_worker_{worker.hex}"


def attempt_payload(job_id: UUID, lease: int) -> str:
    """Return the payload that names an attempt that ended, for the worker that runs it."""
    return f"{job_id.hex} {lease}"


def named_attempt(payload: str) -> tuple[UUID, int] | None:
    """Parse the attempt that may have ended; None if invalid, because any login can notify."""
    words = payload.split()
    try:
        return UUID(hex=words[0]), int(words[1])
    except (ValueError, IndexError):
        return None


def changes_payload(job_ids: set[UUID]) -> str:
    """Return the payload that names the changed jobs; empty if there are too many."""
    return "" if len(job_ids) > MAX_IDS else " ".join(job_id.hex for job_id in job_ids)


def changed_ids(payload: str) -> set[UUID] | None:
    """Parse the ids of changed jobs; None means any. Invalid ids are ignored."""
    return set(_ids(payload.split())) if payload else None


def _ids(words: list[str]) -> Iterator[UUID]:
    for word in words:
        with suppress(ValueError):
            yield UUID(hex=word)
