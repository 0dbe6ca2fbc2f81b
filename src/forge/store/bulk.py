"""Statements of bulk actions: which jobs come next, and the lock on those of one slice."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from forge.core.job_filter import JobFilter
from forge.core.lifecycle import FINAL, Status
from forge.store.listing import ENDED, RELATED, values_of_filter
from forge.store.statement import Rows, Statement, ids, load, rows

# Rows that one statement reads to choose jobs.
WINDOW = 5000
# With at most this many jobs that wait or run, those are read instead of the whole table.
MAX_LIVE = 20_000
# Bytes of inputs that one statement reads.
MAX_BYTES = 1_000_000
LIVE = frozenset(Status) - FINAL
Id = TypeVar("Id", UUID, int)


class Chosen(NamedTuple, Generic[Id]):
    """Jobs or dead letters that match, in the order of their ids."""

    ids: list[Id]
    # The last id that was read; None at the end.
    last_id: Id | None


class Locked(NamedTuple):
    """A job that this transaction has locked."""

    id: UUID
    status: Status
    is_due: bool


def choose(filter: JobFilter, after: UUID, look_at: int = WINDOW) -> Statement[Chosen[UUID]]:
    """Choose the next jobs with the most selective index that has them in the order of ids."""
    args = (*values_of_filter(filter), after, look_at, _index_for(filter))

    def read(found: Rows) -> Chosen[UUID]:
        is_end = found[0]["looked_at"] < look_at
        return Chosen(found[0]["ids"], None if is_end else found[0]["last_id"])

    return Statement(load("bulk/choose"), args, read)


def choose_live(filter: JobFilter, after: UUID) -> Statement[Chosen[UUID] | None]:
    """Choose all jobs that wait or run; None if there are too many."""
    args = (*values_of_filter(filter), after, MAX_LIVE + 1)
    return Statement(
        load("bulk/choose_live"),
        args,
        lambda found: Chosen(found[0]["ids"], None) if found[0]["is_all"] else None,
    )


def is_of_live(filter: JobFilter) -> bool:
    """Whether only jobs that wait or run match, and no index leads to a few of them."""
    has_index = any(getattr(filter, field) is not None for field in RELATED)
    return filter.statuses is not None and LIVE.issuperset(filter.statuses) and not has_index


def matching(filter: JobFilter, job_ids: Sequence[UUID]) -> Statement[list[UUID]]:
    """Return which of these jobs match."""
    return Statement(load("bulk/matching"), (*values_of_filter(filter), job_ids), ids)


def lock(filter: JobFilter, job_ids: Sequence[UUID]) -> Statement[list[Locked]]:
    """Lock those of these jobs that match and that no other transaction has locked."""
    return Statement(
        load("bulk/lock"),
        (*values_of_filter(filter), job_ids),
        lambda found: [Locked(row["id"], Status(row["status"]), row["is_due"]) for row in found],
    )


def contents(job_ids: Sequence[UUID]) -> Statement[Rows]:
    """Read jobs, up to a limit of bytes, in the order of their ids."""
    return Statement(load("bulk/contents"), (job_ids, MAX_BYTES), rows)


def _index_for(filter: JobFilter) -> str:
    for field in (*RELATED, "tenant_id"):
        if getattr(filter, field) is not None:
            return field
    is_ended = filter.statuses is not None and ENDED.issuperset(filter.statuses)
    return "ended" if is_ended else "id"
