"""How many jobs there are, without counting millions of them."""

from collections import Counter
from collections.abc import Collection

from forge.core.lifecycle import FINAL, OWNED, WAITING, Status
from forge.http.access import Caller
from forge.http.shapes import Count, CountsOut, Precision, TypeCounts
from forge.store import listing
from forge.store.statement import Rows

# Up to so many are counted one by one.
CAP = 10_000
# How much of a table with more is read to estimate the rest.
SAMPLE_BLOCKS = 500

Tally = Counter[tuple[str, str]]


async def counts(caller: Caller) -> CountsOut:
    """Count all where there are few; else what is live by index, and estimate what is over."""
    newest = _tally(await caller.run(listing.count_newest(CAP + 1, caller.tenant_id)))
    if newest.total() <= CAP:
        return _alike(newest, "exact")
    if caller.tenant_id is not None:
        return _alike(newest, "at_least")
    live = _tally(await caller.run(listing.count_live(CAP + 1)))
    ended = {row["status"]: row["count"] for row in await caller.run(listing.count_ended(CAP + 1))}
    sample = _tally(await caller.run(listing.count_sample(SAMPLE_BLOCKS)))
    return CountsOut(
        by_status=_live(live) | _final(ended, sample), by_type=_types(live, sample, "estimate")
    )


def _alike(seen: Tally, precision: Precision) -> CountsOut:
    """Say how many were seen, all of them known equally well."""
    by_status = {s: Count(count=_of(seen, {s}), precision=precision) for s in Status}
    return CountsOut(by_status=by_status, by_type=_types(seen, seen, precision))


def _live(live: Tally) -> dict[Status, Count]:
    found: dict[Status, Count] = {}
    for group in (WAITING, OWNED):
        precision: Precision = "exact" if _of(live, group) <= CAP else "at_least"
        found |= {s: Count(count=_of(live, {s}), precision=precision) for s in group}
    return found


def _final(ended: dict[str, int], sample: Tally) -> dict[Status, Count]:
    found = {}
    for status in FINAL:
        counted, guessed = ended.get(status), _of(sample, {status})
        if counted is not None and counted <= CAP:
            found[status] = Count(count=counted, precision="exact")
        else:
            found[status] = Count(count=max(counted or 0, guessed), precision="estimate")
    return found


def _types(live: Tally, all: Tally, precision: Precision) -> dict[str, TypeCounts]:
    """Count by type; what is live was counted up to the cap, whatever is known of the rest."""
    is_capped = max(_of(live, WAITING), _of(live, OWNED)) > CAP
    of_live: Precision = precision if live is all else "at_least" if is_capped else "exact"
    found = {}
    for name in sorted({job_type for _, job_type in (*live, *all)}):
        alive = sum(n for (s, t), n in live.items() if t == name and s not in FINAL)
        known = sum(n for (_, t), n in all.items() if t == name)
        found[name] = TypeCounts(
            live=Count(count=alive, precision=of_live),
            all=Count(count=max(alive, known), precision=precision),
        )
    return found


def _of(tally: Tally, statuses: Collection[str]) -> int:
    return sum(count for (status, _), count in tally.items() if status in statuses)


def _tally(found: Rows) -> Tally:
    return Counter({(row["status"], row["job_type"]): row["count"] for row in found})
