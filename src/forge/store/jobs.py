"""Statements on forge_jobs, one function each."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.errors import SchemaMissing
from forge.core.job import Job
from forge.core.job_columns import COLUMNS
from forge.core.lifecycle import Status
from forge.core.new_job import NewJob
from forge.core.outcome import Completion, Settlement
from forge.core.payload_rules import CheckedPayload
from forge.store.statement import (
    Row,
    Rows,
    Statement,
    columns,
    ids,
    load,
    nothing,
    only,
    rows,
)

# A job may snooze every second for months.
SNOOZES_KEPT = 50


class Dispatched(NamedTuple):
    """The job that a dispatch returns, and whether that dispatch created it."""

    id: UUID
    is_new: bool


class Lane(NamedTuple):
    """A line of waiting jobs that the same workers may take at the same urgency."""

    lane: int
    job_type: str
    queue: str
    worker_capability: str | None
    due_in: float
    # When its first job is due, in seconds since the epoch.
    head: float

    @property
    def priority(self) -> int:
        return 100 - self.urgency

    @property
    def urgency(self) -> int:
        """0 for critical to 100 for background."""
        return self.lane & 127


class RerunChanges(NamedTuple):
    """What differs in the new job of a rerun; None keeps what the old one has.

    In the order of jobs/rerun's parameters.
    """

    # JSON.
    input: str | None = None
    priority: int | None = None
    queue: str | None = None
    scheduled_at: datetime | None = None
    delay: timedelta | None = None
    # JSON.
    auth: str | None = None


class RerunJob(NamedTuple):
    """A job and the new one that does it again."""

    id: UUID
    new_id: UUID


class LaneCursor(NamedTuple):
    """How far into a lane its jobs are known to be taken."""

    lane: int
    at: datetime
    id: UUID


class AttemptUpdate(NamedTuple):
    """How far a running attempt has come; None keeps what is there."""

    id: UUID
    lease: int
    percent: int | None
    message: str | None
    checkpoint: str | None

    def followed_by(self, later: "AttemptUpdate | None") -> "AttemptUpdate":
        """Return what both say together, where they differ what the later one says."""
        if later is None:
            return self
        return AttemptUpdate._make(a if b is None else b for a, b in zip(self, later, strict=True))


# The parameters of each statement that dispatches, after those that it has for each job: fields of
# NewJob, which the generated lists in the statements follow.
_EACH_HAS_ITS_OWN = ("tenant_id", "correlation_id", "payload_version")
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "jobs/dispatch": NewJob._fields,
    "jobs/dispatch_once": NewJob._fields,
    "jobs/dispatch_ruled": tuple(n for n in NewJob._fields if n not in _EACH_HAS_ITS_OWN),
    "jobs/dispatch_each": tuple(n for n in NewJob._fields if n == "delay" or COLUMNS[n].is_batched),
    "jobs/dispatch_one": (
        "job_type",
        "priority",
        "max_attempts",
        "queue",
        "worker_capability",
        "delay",
    ),
}
_values = {name: attrgetter(*fields) for name, fields in PARAMETERS.items()}


def dispatch(
    new: Sequence[UUID], inputs: Sequence[str], new_job: NewJob
) -> Statement[list[Dispatched]]:
    if len(new) == 1 and new_job.has_only(PARAMETERS["jobs/dispatch_one"]):
        args = (new[0], inputs[0], *_values["jobs/dispatch_one"](new_job))
        return Statement(load("jobs/dispatch_one"), args, _all_new(new))
    args = (new, inputs, *_values["jobs/dispatch"](new_job))
    return Statement(load("jobs/dispatch"), args, _all_new(new))


def dispatch_each(
    wanted: Sequence[tuple[UUID, str, NewJob]],
) -> Statement[list[Dispatched]]:
    """Dispatch jobs of several callers; `fits_each` must hold for each, or it loses an option."""
    shared = wanted[0][2]
    if all(new_job is shared for _, _, new_job in wanted):
        # Three lists are encoded in a third of the time of fifteen.
        return dispatch([id for id, _, _ in wanted], [text for _, text, _ in wanted], shared)
    values = _values["jobs/dispatch_each"]
    entries = [(id, text, *values(new_job)) for id, text, new_job in wanted]
    new = [id for id, _, _ in wanted]
    return Statement(load("jobs/dispatch_each"), columns(entries), _all_new(new))


def fits_each(new_job: NewJob) -> bool:
    """Whether jobs/dispatch_each writes all options of this job."""
    return new_job.has_only(PARAMETERS["jobs/dispatch_each"])


def dispatch_once(
    new: Sequence[UUID], inputs: Sequence[str], new_job: NewJob, keys: Sequence[str | None]
) -> Statement[list[Dispatched]]:
    args = (new, inputs, keys, *_values["jobs/dispatch_once"](new_job))
    return Statement(load("jobs/dispatch_once"), args, _dispatched)


def dispatch_ruled(
    new: Sequence[UUID], payloads: Sequence[CheckedPayload], new_job: NewJob
) -> Statement[list[Dispatched]]:
    args = (new, *columns(payloads), *_values["jobs/dispatch_ruled"](new_job))
    return Statement(load("jobs/dispatch_ruled"), args, _dispatched)


def oldest_ready() -> Statement[Row | None]:
    """Read the job that has been due the longest."""
    return Statement(load("jobs/oldest_ready"), (), lambda found: found[0] if found else None)


def stuck(lanes: Sequence[Lane], due_for: float, lately: float) -> Statement[Rows]:
    """Return the types of due lanes that nothing processes, and for how long they are due."""
    args = ([lane.job_type for lane in lanes], [lane.head for lane in lanes], due_for, lately)
    return Statement(load("jobs/stuck"), args, rows)


def survey() -> Statement[list[Lane]]:
    return Statement(load("jobs/survey"), (), _lanes)


def survey_all() -> Statement[list[Lane]]:
    """Survey the lanes for an operator, whom row security binds."""
    return Statement(load("jobs/survey_all"), (), _lanes)


def lanes_of(
    named: Sequence[tuple[str, str, str | None, int]],
) -> Statement[list[int]]:
    """Name the lanes of jobs by type, queue, capability and priority."""
    return Statement(
        load("jobs/lanes_of"), columns(named), lambda found: [row["lane"] for row in found]
    )


def claim(
    places: Sequence[LaneCursor],
    limit: int,
    *,
    start: bool,
    worker: UUID,
    incarnation: UUID,
    lanes: Sequence[Lane] = (),
) -> Statement[list[Job]]:
    """Claim from lanes that are not paused; `lanes` describes them, unless they are built-in."""
    rest = (limit, start, worker, incarnation)
    if len(lanes) == 1:
        (lane,) = lanes
        one = (*places[0], *rest, lane.job_type, lane.queue)
        return Statement(load("jobs/claim"), one, _jobs_of(lane))
    keys, ats, after = [p.lane for p in places], [p.at for p in places], [p.id for p in places]
    types, queues = [lane.job_type for lane in lanes], [lane.queue for lane in lanes]
    across = (keys, ats, after, *rest, types, queues)
    return Statement(load("jobs/claim_across"), across, read_jobs)


def start(jobs: Sequence[Job]) -> Statement[list[UUID]]:
    return _fenced("jobs/start", [(job.id, job.lease, Status.CLAIMED) for job in jobs])


def complete(acks: Sequence[Completion]) -> Statement[list[UUID]]:
    ids, leases, outputs, *_ = columns(acks)

    def accepted(found: Rows) -> list[UUID]:
        some: list[UUID] | None = found[0]["accepted"]
        return ids if some is None else some

    # The driver looks at each element of a list more than once, but takes a text as it is.
    args = (_array(ids), _array(leases), outputs if any(outputs) else None)
    return Statement(load("jobs/complete"), (*args, Status.RUNNING, len(ids)), accepted)


def settle(acks: Sequence[Settlement]) -> Statement[list[UUID]]:
    return Statement(load("jobs/settle"), (*columns(acks), SNOOZES_KEPT), ids)


def note(notes: Sequence[AttemptUpdate]) -> Statement[list[UUID]]:
    entries = [(n.id, n.lease, Status.RUNNING, n.percent, n.message, n.checkpoint) for n in notes]
    return _fenced("jobs/note", entries)


def add_output(job_id: UUID, lease: int, output: str | None) -> Statement[list[UUID]]:
    return Statement(load("jobs/output"), (job_id, lease, output), ids)


def standing(attempts: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
    return Statement(load("jobs/standing"), columns(attempts), rows)


def reconcile(worker: UUID, incarnation: UUID, held: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
    args = (worker, incarnation, [id for id, _ in held], [lease for _, lease in held])
    return Statement(load("jobs/reconcile"), args, rows)


def taken(attempts: Sequence[tuple[UUID, int]]) -> Statement[list[tuple[UUID, int]]]:
    """Return which of these attempts have ended elsewhere."""
    return Statement(
        load("jobs/taken"), columns(attempts), lambda found: [(r["id"], r["lease"]) for r in found]
    )


def rescue(
    owners: Sequence[UUID],
    only: Sequence[UUID] | None,
    *,
    dead_after: float,
    stale_after: float,
    limit: int,
) -> Statement[Rows]:
    return Statement(load("jobs/rescue"), (owners, only, dead_after, stale_after, limit), rows)


def owned_by(owners: Sequence[UUID]) -> Statement[list[UUID]]:
    return Statement(load("jobs/owned_by"), (owners,), ids)


def unknown_owners() -> Statement[list[UUID]]:
    return Statement(load("jobs/unknown_owners"), (), lambda found: [r["worker_id"] for r in found])


def limit_locks() -> Statement[None]:
    """Limit how long this transaction keeps its locks, and how long it waits for others."""
    return Statement(load("transaction/limit"), (), nothing)


def cancel(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None,
    actor: str | None = None,
    *,
    request: UUID | None = None,
) -> Statement[Rows]:
    """Cancel jobs; `request` is a bulk job, whose own audit event stands for all of them."""
    return Statement(load("jobs/cancel"), (job_ids, tenant, reason, actor, request), rows)


def give_up(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None = None,
    actor: str | None = None,
    *,
    request: UUID | None = None,
) -> Statement[Rows]:
    return Statement(load("jobs/give_up"), (job_ids, tenant, reason, actor, request), rows)


def erase(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None = None,
    actor: str | None = None,
    *,
    request: UUID | None = None,
) -> Statement[Rows]:
    return Statement(load("jobs/erase"), (job_ids, tenant, reason, actor, request), rows)


def erase_canaries(job_ids: Sequence[UUID]) -> Statement[list[UUID]]:
    return Statement(load("jobs/erase_canaries"), (job_ids,), ids)


def run_now(
    job_ids: Sequence[UUID], tenant: int | None, reason: str | None, actor: str | None = None
) -> Statement[Rows]:
    return reschedule(job_ids, tenant, reason, actor)


def reschedule(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None,
    actor: str | None = None,
    *,
    at: datetime | None = None,
    delay: timedelta | None = None,
    request: UUID | None = None,
) -> Statement[Rows]:
    """Give waiting jobs another time; without a time or a delay they are due at once."""
    return Statement(
        load("jobs/reschedule"), (job_ids, tenant, reason, actor, at, delay, request), rows
    )


def reprioritise(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None,
    actor: str | None = None,
    *,
    priority: int,
    request: UUID | None = None,
) -> Statement[Rows]:
    return Statement(
        load("jobs/reprioritise"), (job_ids, tenant, reason, actor, priority, request), rows
    )


def move(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None,
    actor: str | None = None,
    *,
    queue: str,
    request: UUID | None = None,
) -> Statement[Rows]:
    return Statement(load("jobs/move"), (job_ids, tenant, reason, actor, queue, request), rows)


def rerun(
    job_ids: Sequence[UUID],
    tenant: int | None,
    reason: str | None,
    actor: str | None,
    changes: RerunChanges,
    *,
    request: UUID | None = None,
) -> Statement[list[RerunJob]]:
    """Create new jobs of final ones; `request` is a bulk job, which makes one of each at most."""
    args = (job_ids, tenant, reason, actor, *changes, request)
    return Statement(
        load("jobs/rerun"), args, lambda found: [RerunJob(r["id"], r["new_id"]) for r in found]
    )


def prune(
    after: UUID,
    look_at: int,
    *,
    completed: float | None,
    failed: float | None,
    of_the_future: bool = False,
) -> Statement[Row]:
    args = (after, look_at, completed, failed, of_the_future)
    return Statement(load("jobs/prune"), args, only)


def count_waiting(tenant_id: int, most: int) -> Statement[int]:
    """Count the waiting jobs of a tenant up to a bound; raise where the index for it is missing."""
    return Statement(load("jobs/count_waiting_of_tenant"), (tenant_id, most), _count)


def get(job_ids: Sequence[UUID]) -> Statement[Rows]:
    return Statement(load("jobs/get"), (job_ids,), rows)


def canary_times(job_id: UUID) -> Statement[Rows]:
    return Statement(load("jobs/canary_times"), (job_id,), rows)


def changed(job_ids: Sequence[UUID], versions: Sequence[int | None]) -> Statement[Rows]:
    return Statement(load("jobs/changed"), (job_ids, versions), rows)


def changed_view(job_ids: Sequence[UUID], versions: Sequence[int | None]) -> Statement[Rows]:
    return Statement(load("jobs/changed_view"), (job_ids, versions), rows)


def attempts(job_id: UUID) -> Statement[Rows]:
    return Statement(load("jobs/attempts"), (job_id,), rows)


def latest_attempts(job_id: UUID, limit: int, with_trace: int) -> Statement[Rows]:
    return Statement(load("jobs/latest_attempts"), (job_id, limit, with_trace), rows)


def read_jobs(found: Rows, shared: Mapping[str, Any] = MappingProxyType({})) -> list[Job]:
    """Read what a claim returned, by the names of its columns, and what all of them share."""
    if not found:
        return []
    # The names are looked up once: to read each row by name takes ten times as long.
    pick, rest = _picker((*found[0].keys(), *shared)), (*shared.values(),)
    if isinstance(found[0], dict):  # of another driver than asyncpg
        return [Job._make(pick((*row.values(), *rest))) for row in found]
    return [Job._make(pick((*row, *rest))) for row in found]


def _fenced(name: str, entries: Sequence[tuple[Any, ...]]) -> Statement[list[UUID]]:
    return Statement(load(name), columns(entries), ids)


def _array(values: Sequence[object]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _jobs_of(lane: Lane) -> Callable[[Rows], list[Job]]:
    """Return a reader of jobs/claim, which leaves out what the lane determines."""
    shared = {
        "type": lane.job_type,
        "queue": lane.queue,
        "worker_capability": lane.worker_capability,
        "priority": lane.priority,
    }
    return lambda found: read_jobs(found, shared)


@cache
def _picker(names: tuple[str, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what puts the values of columns with these names in the order of Job's fields."""
    return itemgetter(*(names.index(field) for field in Job._fields))


def _lanes(found: Rows) -> list[Lane]:
    return [Lane(**row) for row in found]


def _all_new(new: Sequence[UUID]) -> Callable[[Rows], list[Dispatched]]:
    return lambda _: [Dispatched(id, True) for id in new]


def _dispatched(found: Rows) -> list[Dispatched]:
    return [Dispatched(row["id"], row["is_new"]) for row in found]


def _count(found: Rows) -> int:
    count: int | None = found[0]["count"]
    if count is None:
        raise SchemaMissing(
            "the index for [server] max_pending_per_tenant is missing; run `forge migrate` with "
            "this setting"
        )
    return count
