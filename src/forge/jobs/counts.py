"""Counting jobs, at a cost that does not grow with the table."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from forge.core.dead_letter import Statistics
from forge.core.job import BUILTIN_TYPES
from forge.core.job_counts import BoundedCount, CountedJobs, CountsOfType, Precision
from forge.core.job_filter import JobFilter
from forge.core.lifecycle import FINAL, OWNED, WAITING, Status
from forge.definitions.catalog import RunStatement
from forge.store import listing
from forge.store.queue_statistics import MAX_COUNTED, estimate_jobs
from forge.store.statement import Rows

# Jobs that are counted exactly.
EXACT_LIMIT = 10_000
# Blocks of the table that are sampled to estimate the rest.
SAMPLE_BLOCKS = 500

Tally = Counter[tuple[str, str]]


async def count_all(run: RunStatement, tenant: int | None) -> CountedJobs:
    """Count all jobs if there are few; else count live ones by index and estimate final ones."""
    newest = _tally(await run(listing.count_newest(EXACT_LIMIT + 1, tenant)))
    if newest.total() <= EXACT_LIMIT:
        return _uniform(newest, "exact")
    if tenant is not None:
        return _uniform(newest, "at_least")
    live = _tally(await run(listing.count_live(EXACT_LIMIT + 1)))
    ended = {row["status"]: row["count"] for row in await run(listing.count_ended(EXACT_LIMIT + 1))}
    sample = _tally(await run(listing.count_sample(SAMPLE_BLOCKS)))
    return CountedJobs(_live(live) | _final(ended, sample), _types(live, sample, "estimate"))


async def count_filtered(run: RunStatement, wanted: JobFilter) -> CountedJobs:
    """Count the newest jobs that match."""
    found = await run(listing.count_matching(wanted, EXACT_LIMIT + 1))
    is_exact = found.looked_at <= EXACT_LIMIT
    return _uniform(Counter(found.by_status_and_type), "exact" if is_exact else "at_least")


async def count_total(
    run: RunStatement, wanted: JobFilter, *, with_builtin: bool = True
) -> BoundedCount:
    """Count the matches exactly if there are few, else estimate them."""
    found = await run(listing.count_matching(wanted, MAX_COUNTED + 1))
    total = sum(
        count
        for (_, job_type), count in found.by_status_and_type.items()
        if with_builtin or not job_type.startswith(BUILTIN_TYPES)
    )
    if found.looked_at <= MAX_COUNTED:
        return BoundedCount(total, "exact")
    if wanted.tenant_id is None:
        estimate = _estimate(await estimate_jobs(run), wanted)
        if estimate is not None and estimate >= total:
            return BoundedCount(estimate, "estimate")
    return BoundedCount(total, "at_least")


def _uniform(seen: Tally, precision: Precision) -> CountedJobs:
    """Return counts that all have the same precision."""
    by_status = {s: BoundedCount(_of(seen, {s}), precision) for s in Status}
    return CountedJobs(by_status, _types(seen, seen, precision))


def _live(live: Tally) -> dict[Status, BoundedCount]:
    found: dict[Status, BoundedCount] = {}
    for group in (WAITING, OWNED):
        precision: Precision = "exact" if _of(live, group) <= EXACT_LIMIT else "at_least"
        found |= {s: BoundedCount(_of(live, {s}), precision) for s in group}
    return found


def _final(ended: dict[str, int], sample: Tally) -> dict[Status, BoundedCount]:
    found = {}
    for status in FINAL:
        counted, guessed = ended.get(status), _of(sample, {status})
        if counted is not None and counted <= EXACT_LIMIT:
            found[status] = BoundedCount(counted, "exact")
        else:
            found[status] = BoundedCount(max(counted or 0, guessed), "estimate")
    return found


def _types(live: Tally, all: Tally, precision: Precision) -> dict[str, CountsOfType]:
    """Count by type; live jobs are exact up to the limit."""
    is_capped = max(_of(live, WAITING), _of(live, OWNED)) > EXACT_LIMIT
    of_live: Precision = precision if live is all else "at_least" if is_capped else "exact"
    found = {}
    for name in sorted({job_type for _, job_type in (*live, *all)}):
        alive = sum(n for (s, t), n in live.items() if t == name and s not in FINAL)
        known = sum(n for (_, t), n in all.items() if t == name)
        found[name] = CountsOfType(
            live=BoundedCount(alive, of_live),
            all=BoundedCount(max(alive, known), precision),
        )
    return found


def _of(tally: Tally, statuses: Collection[str]) -> int:
    return sum(count for (status, _), count in tally.items() if status in statuses)


def _tally(found: Rows) -> Tally:
    return Counter({(row["status"], row["job_type"]): row["count"] for row in found})


def _estimate(counts: Statistics, wanted: JobFilter) -> int | None:
    """Return the number of matches if the filter has at most one field, which is counted."""
    if wanted.is_empty:
        return counts.total
    for field, counted in (
        ("category", counts.by_category),
        ("job_type", counts.by_type),
        ("error_class", counts.by_error_class),
    ):
        name = getattr(wanted, field)
        if name is not None and replace(wanted, **{field: None}).is_empty:
            return counted.get(name, 0)
    if wanted.statuses is not None and replace(wanted, statuses=None).is_empty:
        return sum(counts.by_status.get(status, 0) for status in wanted.statuses)
    return None
