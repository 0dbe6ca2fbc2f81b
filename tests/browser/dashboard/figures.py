"""Statistics as workers would have written them over the last hour."""

from collections import Counter
from typing import Any

from forge.core.histogram import buckets_of, marks_of
from tests.store.placing import Psql

INSERT = """insert into forge_statistics (minute, job_type, queue, completed, failed, retried,
                              wait_buckets, wait_counts, run_buckets, run_counts)
values (date_trunc('minute', now()) - make_interval(mins => $1), $2, $3, 11, 1, 2,
        $4, $5, $6, $7)"""


async def fill_statistics(
    psql: "Psql[Any]", job_type: str, queue: str, *, minutes: int = 50
) -> None:
    """Insert the outcomes of twelve jobs a minute; one of them failed."""
    for minute in range(minutes):
        waits = buckets_of(Counter(marks_of([0.08] * 11 + [1.0 + minute % 7])))
        runs = buckets_of(Counter(marks_of([2.1] * 11 + [4.0 + minute % 5])))
        histograms = [part for found in (waits, runs) for part in (list(found), [*found.values()])]
        await psql.execute(INSERT, minute, job_type, queue, *histograms)
