"""Where a waiting job stands, and how quickly its line moves: from a bounded number of rows."""

from uuid import UUID

from forge.store.statement import Row, Statement, load

# Jobs that are looked at to see how quickly those of a lane are started.
LOOK_AT = 1000


def ahead(job_id: UUID, most: int) -> Statement[Row | None]:
    return Statement(load("jobs/ahead"), (job_id, most), lambda found: found[0] if found else None)


def started_lately(job_id: UUID) -> Statement[list[float]]:
    return Statement(
        load("jobs/started_lately"), (job_id, LOOK_AT), lambda found: [r["ago"] for r in found]
    )
