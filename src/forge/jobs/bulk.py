"""Bulk actions on all jobs that match, such as cancel and rerun, in a built-in job."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self, TypedDict
from uuid import UUID

from pydantic import BaseModel

from forge.core.bulk import (
    MAX_IDS,
    BulkAction,
    check_options,
    check_rate,
    limited_to,
    parse_action,
)
from forge.core.errors import InvalidValue
from forge.core.job import BUILTIN_TYPES, JobRecord, PriorityLike
from forge.core.job_content import JobContent, SearchCriteria
from forge.core.job_counts import BoundedCount, Precision
from forge.core.job_filter import OLDEST, JobFilter
from forge.core.new_job import (
    DispatchOptions,
    check_name,
    check_reason,
    check_uuid,
    parse_priority,
)
from forge.core.payload import encode
from forge.core.sensitive.shown import shown_job
from forge.definitions.catalog import Catalog
from forge.definitions.job import JobDefinition
from forge.jobs.audited_requests import AuditedRequests, AuditEntry
from forge.jobs.counts import count_total
from forge.jobs.handle import JobHandle
from forge.jobs.search import MAX_LISTED, JobReader, JobSearch, find_jobs
from forge.store import bulk, jobs

# Jobs that a plan shows.
SAMPLE = 10
REQUESTED = "job_bulk_requested"


class BulkOptions(TypedDict, total=False):
    """What `bulk` takes beside the action, the selection and the reason."""

    # Of the jobs afterwards.
    priority: PriorityLike | None
    queue: str | None
    # Jobs per second.
    rate: float | None


class BulkSelection(NamedTuple):
    """Which jobs a bulk action applies to: exactly one of the three."""

    filter: JobFilter | None = None
    content: JobContent = JobContent()
    ids: Collection[UUID | str] | None = None
    all: bool = False

    @classmethod
    def of(
        cls, criteria: SearchCriteria | None, ids: Collection[UUID | str] | None, all: bool
    ) -> Self:
        """Read the arguments of Python callers."""
        if criteria is None:
            return cls(ids=ids, all=all)
        content = JobContent.checked(criteria.get("q"), criteria.get("input"))
        rest: Any = {name: value for name, value in criteria.items() if name not in ("q", "input")}
        return cls(JobFilter.of(rest), content, ids, all)


class BulkRequest(BaseModel):
    """The input of forge.bulk: what is done with which jobs, how fast, and why."""

    action: BulkAction
    # With the statuses that the action applies to.
    filter: JobFilter
    content: JobContent = JobContent()
    # Only these, in the order of their ids; None: all that match.
    ids: list[UUID] | None = None
    reason: str | None = None
    priority: int | None = None
    queue: str | None = None
    rate: float | None = None
    count: int = 0
    precision: Precision = "exact"

    @classmethod
    def checked(
        cls,
        action: BulkAction | str,
        selection: BulkSelection,
        reason: str | None,
        options: BulkOptions,
    ) -> Self:
        """Check a request, or say what is allowed."""
        wanted = parse_action(action)
        if unknown := options.keys() - BulkOptions.__annotations__.keys():
            allowed = ", ".join(BulkOptions.__annotations__)
            raise InvalidValue(f"bulk has no option {min(unknown)!r}; it takes {allowed}")
        priority, queue = options.get("priority"), options.get("queue")
        check_options(wanted, priority=priority, queue=queue)
        return cls.selecting(wanted, selection).model_copy(
            update={
                "reason": _reason(reason),
                "priority": None if priority is None else parse_priority(priority),
                "queue": None if queue is None else check_name(queue, what="queue"),
                "rate": check_rate(options.get("rate")),
            }
        )

    @classmethod
    def selecting(cls, action: BulkAction | str, selection: BulkSelection) -> Self:
        """Check which jobs are meant, for a plan."""
        wanted = parse_action(action)
        return cls(
            action=wanted,
            filter=limited_to(wanted, _filter(selection)),
            content=selection.content,
            ids=None if selection.ids is None else _ids(selection.ids),
        )

    def for_tenant(self, tenant_id: int | None) -> "BulkRequest":
        """Limit it to a tenant; None leaves it as it is."""
        if tenant_id is None:
            return self
        return self.model_copy(update={"filter": replace(self.filter, tenant_id=tenant_id)})


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """What a bulk action would do: the number of jobs, and some of them, redacted."""

    count: int
    precision: Precision
    sample: Sequence[JobRecord]


class BulkActions:
    """The bulk actions of an app."""

    def __init__(
        self, catalog: Catalog, requests: AuditedRequests, bulk_job: JobDefinition[Any, Any]
    ) -> None:
        self._catalog = catalog
        self._requests = requests
        # The built-in job that carries them out.
        self._bulk_job = bulk_job

    async def plan(self, wanted: BulkRequest, reader: JobReader) -> BulkPlan:
        """Return what a request would do, without doing it."""
        if not wanted.content.is_any:
            return await self._search(wanted, reader)
        counted = await self.count(wanted, reader)
        return BulkPlan(counted.count, counted.precision, await self._sample(wanted, reader))

    async def count(self, wanted: BulkRequest, reader: JobReader) -> BoundedCount:
        """Count the jobs that a request would act on."""
        if wanted.ids is not None:
            found = await reader.run(bulk.matching(wanted.filter, wanted.ids))
            return BoundedCount(len(found), "exact")
        if not wanted.content.is_any:
            found_now = await self._search(wanted, reader)
            return BoundedCount(found_now.count, found_now.precision)
        if bulk.is_of_live(wanted.filter):
            live = await reader.run_over_all(bulk.choose_live(wanted.filter, OLDEST))
            if live is not None:
                return BoundedCount(len(live.ids), "exact")
        return await count_total(reader.run, wanted.filter, with_builtin=False)

    async def request(
        self, wanted: BulkRequest, counted: BoundedCount, options: DispatchOptions
    ) -> JobHandle[Any]:
        """Have a worker carry out a request, with one audit event.

        `options` has the auth of the caller, and the tenant if it is limited to one.
        """
        limited = wanted.model_copy(update=asdict(counted))
        entry = AuditEntry(REQUESTED, wanted.reason, _detail(limited))
        return await self._requests.dispatch(self._bulk_job, limited, options, entry)

    async def _search(self, wanted: BulkRequest, reader: JobReader) -> BulkPlan:
        """Compare the newest jobs: there are at least as many as match among those."""
        search = JobSearch(wanted.filter, wanted.content.q, wanted.content.inputs)
        page = await find_jobs(reader, search, MAX_LISTED)
        ours = [job for job in page.items if not job.job_type.startswith(BUILTIN_TYPES)]
        precision: Precision = "exact" if page.next_cursor is None else "at_least"
        return BulkPlan(len(ours), precision, ours[:SAMPLE])

    async def _sample(self, wanted: BulkRequest, reader: JobReader) -> Sequence[JobRecord]:
        if wanted.ids is not None:
            found = await reader.run(bulk.matching(wanted.filter, wanted.ids))
            records = map(JobRecord.from_row, await reader.run(jobs.get(found[:SAMPLE])))
            return [
                shown_job(record, await self._catalog.sensitive_allowed(record.job_type))
                for record in records
            ]
        search = JobSearch(wanted.filter, is_summary=True)
        # Some more, because the built-in jobs are left out.
        page = await find_jobs(reader, search, 2 * SAMPLE)
        ours = [job for job in page.items if not job.job_type.startswith(BUILTIN_TYPES)]
        return ours[:SAMPLE]


def _filter(selection: BulkSelection) -> JobFilter:
    filter, content, ids, all = selection
    if (filter is not None) + (ids is not None) + all != 1:
        raise InvalidValue("name the jobs by one of filter, ids and all; leave the others out")
    if filter is not None and filter.is_empty and content.is_any:
        raise InvalidValue("the filter is empty; add a condition such as type, or set all to true")
    return filter or JobFilter()


def _ids(ids: Collection[UUID | str]) -> list[UUID]:
    if isinstance(ids, str) or not 1 <= len(ids) <= MAX_IDS:
        raise InvalidValue(f"ids must be a list of 1 to {MAX_IDS:,} job ids; or use a filter")
    return sorted({check_uuid(job_id, "ids") for job_id in ids})


def _reason(reason: str | None) -> str:
    if (checked := check_reason(reason)) is None:
        raise InvalidValue("a bulk action needs a reason; it is stored in the audit log")
    return checked


def _detail(wanted: BulkRequest) -> str:
    """Return the request for the audit log: the conditions, and of the ids only how many."""
    said = wanted.model_dump(mode="json", include={"action", "priority", "queue", "rate", "count"})
    conditions = {"q": wanted.content.q, **asdict(wanted.filter)}
    written: dict[str, Any] = {
        name: value if isinstance(value, int | tuple) else str(value)
        for name, value in conditions.items()
        if value is not None
    }
    if wanted.content.inputs:
        written["input"] = dict(wanted.content.inputs)
    ids = None if wanted.ids is None else len(wanted.ids)
    detail = said | {"precision": wanted.precision, "filter": written, "ids": ids}
    return encode({name: value for name, value in detail.items() if value is not None})
