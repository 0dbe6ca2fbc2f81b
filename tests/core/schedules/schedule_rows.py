"""The row of a schedule, and what follows when a run of it has ended."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from forge.core.outcome import Outcome
from forge.core.retry import Retry
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Rule
from forge.core.schedules.run import Conclusion, conclude, make_run, rule_of

T0 = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def record(**columns: Any) -> ScheduleRecord:
    """Return a schedule whose run began at T0, as it was due."""
    known = dict.fromkeys(ScheduleRecord.__dataclass_fields__) | {
        "id": UUID(int=1),
        "type": "tick",
        "key": "",
        "payload": {},
        "enabled": True,
        "next_run_at": T0,
        "running_since": T0,
        "consecutive_failures": 0,
        "created_at": T0,
        "updated_at": T0,
        "lease": 1,
        "tz": "UTC",
        "missed": "once",
        "priority": 50,
        "recent_runs": [],
        "crashes": 0,
        "suspect": False,
        "edited": [],
        "undecodable": (),
    }
    return ScheduleRecord(**known | columns)


def ended(
    outcome: Outcome,
    *,
    seconds: float = 0.0,
    retry: Retry | None = None,
    default: Rule | None = None,
    **columns: Any,
) -> Conclusion:
    """Return what follows for a schedule with these columns when its run ends like this."""
    row = record(**columns)
    run = make_run(row, "{}", None)
    rule = rule_of(row, default)
    return conclude(run, outcome, rule=rule, retry=retry, seconds=seconds, chance=0.0)
