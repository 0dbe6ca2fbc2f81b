"""Reading statistics: for operators by type and queue, for a tenant its outcomes; the backlog."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

from forge.core.backlog import COUNTED_PER_LANE, BacklogItem, backlog
from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue
from forge.core.job_statistics import (
    GROUPS,
    Group,
    JobStatistics,
    StatisticsByType,
    StatisticsWindow,
    by_type,
    series,
)
from forge.core.new_job import check_name, check_tenant
from forge.store import job_statistics, queue_statistics

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.definitions.catalog import RunStatement


class StatisticsFilters(TypedDict, total=False):
    """What statistics are about: `last` is the time before `until`, instead of `since`."""

    last: timedelta | str | None
    since: datetime | None
    until: datetime | None
    step: timedelta | str | None
    job_type: str | None
    queue: str | None
    tenant_id: int | None


async def read_series(run: "RunStatement", **filters: "Unpack[StatisticsFilters]") -> JobStatistics:
    """Return the statistics of each step."""
    window, tenant = _window(filters), filters.get("tenant_id")
    if tenant is not None:
        found = await run(job_statistics.series_of_tenant(window, tenant))
    else:
        job_type, queue = filters.get("job_type"), filters.get("queue")
        found = await run(job_statistics.series(window, job_type, queue))
    return series(window, found)


async def read_by_type(
    run: "RunStatement", group: Group = "type_and_queue", **filters: "Unpack[StatisticsFilters]"
) -> StatisticsByType:
    """Return the totals by type and queue; of a tenant one total, since its types are not kept."""
    if group not in GROUPS:
        raise InvalidValue(f"group must be one of {', '.join(GROUPS)}, not {group!r}")
    window, tenant = _window(filters, is_series=False), filters.get("tenant_id")
    if tenant is not None:
        found = await run(job_statistics.total_of_tenant(window, tenant))
    else:
        job_type, queue = filters.get("job_type"), filters.get("queue")
        found = await run(job_statistics.by_type(window, job_type, queue))
    return by_type(window, found, group)


async def read_backlog(run: "RunStatement") -> list[BacklogItem]:
    """Return what waits and runs now, by type, queue and capability."""
    lanes = await run(queue_statistics.depth(COUNTED_PER_LANE))
    return backlog(lanes, await run(queue_statistics.owned_by_type()))


def _window(filters: StatisticsFilters, *, is_series: bool = True) -> StatisticsWindow:
    tenant = check_tenant(filters.get("tenant_id"))
    for name in ("job_type", "queue"):
        if (value := filters.get(name)) is None:
            continue
        check_name(value, what=name)
        if tenant is not None:
            raise InvalidValue(
                f"{name} cannot be combined with a tenant: its statistics are kept for all types "
                f"together; leave {name} out"
            )
    now = datetime.now(UTC)
    since, until = filters.get("since"), filters.get("until")
    if (last := filters.get("last")) is not None:
        if since is not None:
            raise InvalidValue("give last or since, not both")
        since = (until or now) - parse_duration(last, what="last")
    step = filters.get("step") if is_series else None
    return StatisticsWindow.of(
        now,
        since=since,
        until=until,
        step=step,
        of_tenant=tenant is not None,
        is_series=is_series,
    )
