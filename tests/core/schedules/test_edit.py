"""What an edit makes of a schedule, and when it would run then."""

from datetime import UTC, datetime
from typing import Any

import pytest

from forge import InvalidValue
from forge.core.schedules.edit import ScheduleChanges, edited, preview
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Rule
from tests.core.schedules.schedule_rows import HOUR, MINUTE, T0, record

NOW = T0 + 30 * MINUTE


def row(**columns: Any) -> ScheduleRecord:
    """Return a schedule that is not running."""
    return record(**{"running_since": None} | columns)


@pytest.mark.parametrize(
    ("columns", "changes", "due"),
    [
        # Another rule plans the next run again.
        ({"every": HOUR, "last_run_at": T0}, {"every": "2h"}, T0 + 2 * HOUR),
        ({"every": HOUR, "last_run_at": T0}, {"every": "10m"}, NOW),
        ({"every": HOUR, "running_since": NOW - MINUTE}, {"every": "2h"}, NOW + 119 * MINUTE),
        # One that never ran keeps its start.
        ({"every": HOUR, "next_run_at": NOW + 3 * HOUR}, {"every": "1m"}, NOW + 3 * HOUR),
        ({"every": HOUR, "next_run_at": T0}, {"every": "1m"}, NOW),
        ({"every": HOUR}, {"cron": "0 * * * *"}, T0 + HOUR),
        ({"every": HOUR}, {"next_run_at": NOW + MINUTE}, NOW + MINUTE),
        # The same rule, or another field, does not.
        ({"every": HOUR, "next_run_at": NOW + MINUTE}, {"every": "60m"}, NOW + MINUTE),
        ({"every": HOUR, "next_run_at": NOW + MINUTE}, {"jitter": "5m"}, NOW + MINUTE),
        ({"every": HOUR, "next_run_at": NOW + MINUTE}, {"every": None}, NOW + MINUTE),
    ],
)
def test_edit_plans_the_next_run(
    columns: dict[str, Any], changes: ScheduleChanges, due: datetime
) -> None:
    after = edited(row(**columns), changes, NOW)

    assert after.next_run_at == due


def test_one_rule_replaces_the_other_and_none_removes_values() -> None:
    before = row(every=HOUR, jitter=MINUTE, timeout=HOUR, worker_capability="gpu")

    cron = edited(before, {"cron": "0 3 * * *", "tz": "Europe/Paris"}, NOW)
    every = edited(cron, {"every": "2h"}, NOW)
    removed = edited(
        before, {"every": None, "jitter": None, "timeout": None, "worker_capability": None}, NOW
    )

    assert (cron.every, cron.cron, cron.tz) == (None, "0 3 * * *", "Europe/Paris")
    assert (every.every, every.cron, every.tz) == (2 * HOUR, None, "UTC")
    assert removed.rule == Rule()
    assert (removed.timeout, removed.worker_capability) == (None, None)


def test_edit_names_what_a_definition_in_code_leaves_alone() -> None:
    before = row(cron="0 3 * * *", edited=["missed"])

    after = edited(before, {"tz": "Europe/Paris", "jitter": "1m", "timeout": "5m"}, NOW)

    assert after.edited == ["jitter", "missed", "rule"]


def test_patch_applies_to_the_stored_payload() -> None:
    before = row(payload={"to": "ann", "token": "t", "cc": 1})

    after = edited(before, {"patch": {"to": "bob", "cc": None}}, NOW)

    assert after.payload == {"to": "bob", "token": "t"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"every": "1h", "cron": "0 3 * * *"}, "every and cron are both given"),
        ({"tz": "Europe/Paris"}, "tz belongs to cron"),
        ({"cron": "0 3 31 2 *"}, "is not a cron expression"),
        ({"cron": "at three"}, "is not a cron expression"),
        ({"cron": "0 3 * * *", "tz": "Mars"}, "no time zone"),
        ({"every": "0s"}, "every"),
        ({"missed": "maybe"}, "missed must be one of"),
        ({"priority": 60}, "priority must be one of"),
        ({"next_run_at": datetime(2030, 1, 1)}, "no time zone"),
        ({"payload": {}, "patch": {}}, "either payload or patch"),
        ({"evry": "1h"}, "did you mean every"),
    ],
)
def test_invalid_edit_says_what_is_wrong(changes: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        edited(row(every=HOUR), changes, NOW)


def test_patch_of_an_undecodable_payload_is_refused() -> None:
    with pytest.raises(InvalidValue, match="give a new payload"):
        edited(row(undecodable=("payload",)), {"patch": {}}, NOW)


def test_preview_shows_the_runs_that_follow_also_of_a_disabled_schedule() -> None:
    before = row(every=HOUR, enabled=False, last_run_at=T0)
    after = edited(
        before, {"cron": "0 3 * * *", "tz": "Europe/Paris"}, datetime(2026, 3, 27, tzinfo=UTC)
    )

    shown = preview(before, after, datetime(2026, 3, 27, tzinfo=UTC), 3)

    assert shown.changed == ["every", "cron", "tz", "next_run_at"]
    assert shown.in_words == "at 03:00 every day, Europe/Paris time"
    # The clocks change on the 29th.
    hours = [f"{moment:%d %H}" for moment in shown.next_runs]
    assert hours == ["27 02", "28 02", "29 01"]


def test_preview_uses_the_rule_of_the_type_where_the_row_has_none() -> None:
    before = row(next_run_at=NOW)

    shown = preview(before, before, NOW, 2, Rule(every=HOUR))

    assert shown.next_runs == [NOW, NOW + HOUR]
    assert (shown.changed, shown.in_words) == ([], "every hour")
