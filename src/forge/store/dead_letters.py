"""What is asked of forge_dead_letters: one function per statement."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.dead_letter import (
    DeadLetter,
    DeadLetterGroup,
    LetterFilter,
    Reprocessed,
    Statistics,
)
from forge.core.payload import decode_if_possible
from forge.store.statement import Rows, Statement, ids, load

# Above every id.
NEWEST = 2**63 - 1
# The payloads of a whole page are read at once.
LONGEST_LISTED = 100_000


class Compacted(NamedTuple):
    """How many rows of counts were summed up, and how many they became."""

    taken: int
    kept: int


class Count(NamedTuple):
    """How many dead letters there are, and the id of the newest of them."""

    letters: int
    newest: int


class Outcome(NamedTuple):
    """What became of a dead letter, and of the job that was made of it."""

    dlq_id: int
    status: str
    new_job_id: UUID | None
    # The forge.reprocess job that made it; None where a person did.
    request_id: UUID | None
    # None where the job was deleted since.
    job_status: str | None
    # Whether an attempt of the job has failed, also where others follow.
    has_failed: bool


def get(dlq_id: int, tenant: int | None) -> Statement[DeadLetter | None]:
    return Statement(
        load("dead_letters/get"),
        (dlq_id, tenant),
        lambda found: DeadLetter.from_row(found[0]) if found else None,
    )


def listed(wanted: LetterFilter, before: int | None, limit: int) -> Statement[list[DeadLetter]]:
    args = (wanted.status, NEWEST if before is None else before, limit)
    return Statement(*_by_index("dead_letters/list", args, wanted), _letters)


def payloads(dlq_ids: Sequence[int]) -> Statement[dict[int, Any]]:
    return Statement(load("dead_letters/payloads"), (dlq_ids, LONGEST_LISTED), _payloads)


def count(wanted: LetterFilter) -> Statement[Count]:
    return Statement(
        load("dead_letters/count"), _filter(wanted), lambda found: Count(*found[0].values())
    )


def groups(wanted: LetterFilter, limit: int) -> Statement[list[DeadLetterGroup]]:
    return Statement(load("dead_letters/groups"), (*_filter(wanted), limit), _groups)


def statistics(tenant: int | None) -> Statement[Statistics]:
    return Statement(load("dead_letters/statistics"), (tenant,), Statistics.from_rows)


def choose(wanted: LetterFilter, *, after: int, until: int, limit: int) -> Statement[list[int]]:
    """Find what is under review, whatever status the filter names."""
    return Statement(*_by_index("dead_letters/choose", (after, until, limit), wanted), _ids)


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


def discard(dlq_id: int, tenant: int | None, actor: str | None, notes: str) -> Statement[list[int]]:
    return Statement(load("dead_letters/discard"), (dlq_id, tenant, actor, notes), _ids)


def outcomes(dlq_ids: Sequence[int]) -> Statement[list[Outcome]]:
    return Statement(
        load("dead_letters/outcomes"),
        (dlq_ids,),
        lambda found: [Outcome(*row.values()) for row in found],
    )


def compact(limit: int) -> Statement[Compacted]:
    return Statement(load("dead_letters/compact"), (limit,), lambda found: Compacted(**found[0]))


def prune(keep_seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("dead_letters/prune"), (keep_seconds, limit), ids)


def _by_index(
    name: str, args: tuple[Any, ...], wanted: LetterFilter
) -> tuple[str, tuple[Any, ...]]:
    """Choose among the ways to read letters the one whose index serves the filter."""
    if wanted.names_causes:
        name += "_group"
        args += (wanted.job_type, wanted.category, wanted.error_class, wanted.fingerprint)
    if wanted.tenant_id is not None:
        name += "_of_tenant"
        args += (wanted.tenant_id,)
    return load(name), args


def _filter(wanted: LetterFilter) -> tuple[Any, ...]:
    return (
        wanted.status,
        wanted.job_type,
        wanted.category,
        wanted.error_class,
        wanted.fingerprint,
        wanted.tenant_id,
    )


def _letters(found: Rows) -> list[DeadLetter]:
    return [DeadLetter.from_row(row) for row in found]


def _payloads(found: Rows) -> dict[int, Any]:
    # Drivers differ: some hand out jsonb as text, some as what it means.
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


def _reprocessed(found: Rows) -> list[Reprocessed]:
    return [Reprocessed(*row.values()) for row in found]


def _ids(found: Rows) -> list[int]:
    return [row["dlq_id"] for row in found]
