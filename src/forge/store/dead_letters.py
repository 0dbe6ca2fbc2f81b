"""Statements on forge_dead_letters, one function each."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.dead_letter import (
    Activity,
    DeadLetter,
    DeadLetterGroup,
    LetterFilter,
    Reprocessed,
    Statistics,
)
from forge.core.payload import decode_if_possible
from forge.store.statement import Rows, Statement, ids, load

# Greater than every id.
ABOVE_ALL = 2**63 - 1
# How far the dead letters of one cause in one step of a period are counted.
HIGHEST_COUNT = 500
# Larger payloads are left out of lists, because all payloads of a page are read at once.
MAX_LISTED_PAYLOAD = 100_000


class Compacted(NamedTuple):
    """How many rows of counts were merged, and into how many."""

    taken: int
    kept: int


class LetterCount(NamedTuple):
    """The number of dead letters, and the id of the newest."""

    letters: int
    newest: int


class LetterOutcome(NamedTuple):
    """The status of a dead letter, and of the job that reprocesses it."""

    dlq_id: int
    status: str
    new_job_id: UUID | None
    # The forge.reprocess or forge.discard job that reviewed it; None if a person did.
    request_id: UUID | None
    # None if the job was deleted.
    job_status: str | None
    # Whether an attempt of the job has failed, even if it will be retried.
    has_failed: bool


def get(dlq_id: int, tenant: int | None) -> Statement[DeadLetter | None]:
    return Statement(
        load("dead_letters/get"),
        (dlq_id, tenant),
        lambda found: DeadLetter.from_row(found[0]) if found else None,
    )


def listed(filter: LetterFilter, before: int | None, limit: int) -> Statement[list[DeadLetter]]:
    args = (filter.status, ABOVE_ALL if before is None else before, limit)
    return Statement(*_by_index("dead_letters/list", args, filter), _letters)


def payloads(dlq_ids: Sequence[int]) -> Statement[dict[int, Any]]:
    return Statement(load("dead_letters/payloads"), (dlq_ids, MAX_LISTED_PAYLOAD), _payloads)


def count(filter: LetterFilter) -> Statement[LetterCount]:
    return Statement(
        load("dead_letters/count"), _filter(filter), lambda found: LetterCount(*found[0].values())
    )


def groups(filter: LetterFilter, limit: int) -> Statement[list[DeadLetterGroup]]:
    return Statement(load("dead_letters/groups"), (*_filter(filter), limit), _groups)


def activity(
    fingerprints: Sequence[str], status: str | None, tenant: int | None, step: timedelta, steps: int
) -> Statement[Activity | None]:
    """Count the dead letters of causes per step, up to the present one; None without a cause."""
    args: tuple[Any, ...] = (fingerprints, status, step.total_seconds(), steps, HIGHEST_COUNT)
    if tenant is None:
        return Statement(load("dead_letters/activity"), args, lambda rows: _activity(rows, step))
    name = "dead_letters/activity_of_tenant"
    return Statement(load(name), (*args, tenant), lambda rows: _activity(rows, step))


def statistics(tenant: int | None) -> Statement[Statistics]:
    return Statement(load("dead_letters/statistics"), (tenant,), Statistics.from_rows)


def choose(filter: LetterFilter, *, after: int, until: int, limit: int) -> Statement[list[int]]:
    """Find dead letters under review that match, ignoring the status of the filter."""
    return Statement(*_by_index("dead_letters/choose", (after, until, limit), filter), _ids)


def audit(
    event: str,
    dlq_ids: Sequence[int],
    actor: str | None,
    notes: str | None,
    detail: str | None = None,
) -> Statement[list[Any]]:
    return Statement(load("dead_letters/audit"), (event, dlq_ids, actor, notes, detail), ids)


def reprocess(
    dlq_ids: Sequence[int],
    tenant: int | None,
    actor: str | None,
    notes: str | None,
    *,
    payload: str | None = None,
    priority: int | None = None,
    request_id: UUID | None = None,
) -> Statement[list[Reprocessed]]:
    args = (dlq_ids, tenant, actor, notes, payload, priority, request_id)
    return Statement(load("dead_letters/reprocess"), args, _reprocessed)


def discard(
    dlq_ids: Sequence[int],
    tenant: int | None,
    actor: str | None,
    notes: str,
    *,
    request_id: UUID | None = None,
) -> Statement[list[int]]:
    args = (dlq_ids, tenant, actor, notes, request_id)
    return Statement(load("dead_letters/discard"), args, _ids)


def lock(dlq_ids: Sequence[int], tenant: int | None) -> Statement[list[int]]:
    """Lock those under review that no other transaction has locked."""
    return Statement(load("dead_letters/lock"), (dlq_ids, tenant), _ids)


def under_review(dlq_ids: Sequence[int]) -> Statement[list[int]]:
    """Return which of these are under review."""
    return Statement(load("dead_letters/under_review"), (dlq_ids,), _ids)


def outcomes(dlq_ids: Sequence[int]) -> Statement[list[LetterOutcome]]:
    return Statement(
        load("dead_letters/outcomes"),
        (dlq_ids,),
        lambda found: [LetterOutcome(*row.values()) for row in found],
    )


def compact(limit: int) -> Statement[Compacted]:
    return Statement(load("dead_letters/compact"), (limit,), lambda found: Compacted(**found[0]))


def prune(keep_seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("dead_letters/prune"), (keep_seconds, limit), ids)


def _by_index(
    name: str, args: tuple[Any, ...], filter: LetterFilter
) -> tuple[str, tuple[Any, ...]]:
    """Choose the statement whose index fits the filter."""
    if filter.names_causes:
        name += "_group"
        args += (filter.job_type, filter.category, filter.error_class, filter.fingerprint)
    if filter.tenant_id is not None:
        name += "_of_tenant"
        args += (filter.tenant_id,)
    return load(name), args


def _filter(filter: LetterFilter) -> tuple[Any, ...]:
    return (
        filter.status,
        filter.job_type,
        filter.category,
        filter.error_class,
        filter.fingerprint,
        filter.tenant_id,
    )


def arrived(seconds: float, limit: int) -> Statement[dict[str, int]]:
    """Count the dead letters of the last seconds by type, up to a limit."""
    return Statement(
        load("dead_letters/arrived"),
        (seconds, limit),
        lambda found: {row["job_type"]: row["letters"] for row in found},
    )


def _letters(found: Rows) -> list[DeadLetter]:
    return [DeadLetter.from_row(row) for row in found]


def _payloads(found: Rows) -> dict[int, Any]:
    # Some drivers return jsonb as text, others decode it.
    return {
        row["dlq_id"]: (
            decode_if_possible(row["payload"])
            if isinstance(row["payload"], str)
            else row["payload"]
        )
        for row in found
    }


def _groups(found: Rows) -> list[DeadLetterGroup]:
    return [DeadLetterGroup(**row) for row in found]


def _activity(found: Rows, step: timedelta) -> Activity | None:
    if not found:
        return None
    counts = {row["fingerprint"]: list(row["counts"]) for row in found}
    return Activity(found[0]["began"], step, HIGHEST_COUNT, counts)


def _reprocessed(found: Rows) -> list[Reprocessed]:
    return [Reprocessed(*row.values()) for row in found]


def _ids(found: Rows) -> list[int]:
    return [row["dlq_id"] for row in found]
