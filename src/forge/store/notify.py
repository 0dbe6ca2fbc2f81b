"""Channels: hints that somebody should look. One may be lost; a poll stands behind each."""

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


def changes_payload(job_ids: set[UUID]) -> str:
    """Name the jobs that changed, or none when there are too many to name."""
    return "" if len(job_ids) > MOST_IDS else " ".join(job_id.hex for job_id in job_ids)


def changed_ids(payload: str) -> set[UUID] | None:
    """Read which jobs changed; None means any."""
    return {UUID(hex=word) for word in payload.split()} if payload else None
