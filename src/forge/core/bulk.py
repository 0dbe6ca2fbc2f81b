"""Bulk actions: which jobs each applies to, and what a request may say."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from forge.core.errors import InvalidValue
from forge.core.job_filter import JobFilter
from forge.core.lifecycle import FINAL, OWNED, WAITING, Status

# Ids in one request. A filter has no limit.
MAX_IDS = 5_000
# Jobs or dead letters per second that can be asked for. Without a rate it is as fast as ordinary
# jobs allow.
HIGHEST_RATE = 100_000.0


class BulkAction(StrEnum):
    """What is done with each job that matches."""

    CANCEL = "cancel"
    RUN_NOW = "run_now"
    DELETE = "delete"
    RERUN = "rerun"
    REPRIORITISE = "reprioritise"
    MOVE = "move"


# The statuses in which a job can be acted on; jobs in others are left alone.
APPLIES_TO: Mapping[BulkAction, frozenset[Status]] = {
    BulkAction.CANCEL: WAITING | OWNED,
    BulkAction.RUN_NOW: WAITING,
    BulkAction.DELETE: WAITING | FINAL,
    BulkAction.RERUN: FINAL,
    BulkAction.REPRIORITISE: WAITING,
    BulkAction.MOVE: WAITING,
}
# The options that an action takes; `priority` and `queue` are those of the jobs afterwards.
TAKES: Mapping[BulkAction, frozenset[str]] = {
    BulkAction.RERUN: frozenset({"priority", "queue"}),
    BulkAction.REPRIORITISE: frozenset({"priority"}),
    BulkAction.MOVE: frozenset({"queue"}),
}
NEEDS = {BulkAction.REPRIORITISE: "priority", BulkAction.MOVE: "queue"}


def parse_action(value: object) -> BulkAction:
    """Read an action by its name."""
    try:
        return BulkAction(str(value))
    except ValueError:
        allowed = ", ".join(BulkAction)
        raise InvalidValue(f"action must be one of {allowed}, not {value!r}") from None


def limited_to(action: BulkAction, filter: JobFilter) -> JobFilter:
    """Return a filter with the statuses that the action applies to, or say that none is left."""
    allowed = APPLIES_TO[action]
    wanted = tuple(Status) if filter.statuses is None else filter.statuses
    if not (statuses := tuple(status for status in wanted if status in allowed)):
        raise InvalidValue(
            f"{action} applies to jobs that are {_listed(allowed)}; none of them is in the filter, "
            f"which names {_listed(wanted) or 'no status'}"
        )
    return replace(filter, statuses=statuses)


def check_rate(rate: float | None) -> float | None:
    """Refuse a rate at which nothing would happen, or that stands for none."""
    if rate is not None and not 0 < rate <= HIGHEST_RATE:
        raise InvalidValue(
            f"rate must be above 0 and at most {HIGHEST_RATE:,.0f} a second, not {rate!r}; "
            "leave it out to go as fast as possible"
        )
    return rate


def check_options(action: BulkAction, **options: object) -> None:
    """Refuse an option that the action does not take, and the lack of one that it needs."""
    for name, value in options.items():
        if value is not None and name not in TAKES.get(action, ()):
            takers = ", ".join(taker for taker in BulkAction if name in TAKES.get(taker, ()))
            raise InvalidValue(f"{action} takes no {name}, which is for {takers}; leave it out")
    needed = NEEDS.get(action)
    if needed is not None and options[needed] is None:
        raise InvalidValue(f"{action} needs the {needed} that the jobs get; add it")


def _listed(statuses: object) -> str:
    return ", ".join(status for status in Status if status in statuses)  # type: ignore[operator]
