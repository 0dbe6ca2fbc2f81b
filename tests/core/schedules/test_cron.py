"""Cron expressions: their ticks in five time zones, through every clock change."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.core.errors import InvalidValue
from forge.core.schedules.rule import (
    Rule,
    check_cron,
    cron_in_words,
    in_words,
    next_after,
    ticks_after,
    zone,
)

PARIS, NEW_YORK = "Europe/Paris", "America/New_York"
LORD_HOWE, SANTIAGO, KOLKATA = "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"

# What comes after noon of the day before the clocks change, as the wall shows it.
TABLE = [
    # A time of day that is skipped comes when the clocks have skipped it.
    (PARIS, "30 2 * * *", "2026-03-28", ["03-29 03:00+0200", "03-30 02:30+0200"]),
    (NEW_YORK, "30 2 * * *", "2026-03-07", ["03-08 03:00-0400", "03-09 02:30-0400"]),
    (LORD_HOWE, "15 2 * * *", "2026-10-03", ["10-04 02:30+1100", "10-05 02:15+1100"]),
    (SANTIAGO, "0 0 * * *", "2026-09-05", ["09-06 01:00-0300", "09-07 00:00-0300"]),
    (KOLKATA, "30 2 * * *", "2026-03-28", ["03-29 02:30+0530", "03-30 02:30+0530"]),
    # One that is shown twice comes the first time only.
    (PARIS, "30 2 * * *", "2026-10-24", ["10-25 02:30+0200", "10-26 02:30+0100"]),
    (NEW_YORK, "30 1 * * *", "2026-10-31", ["11-01 01:30-0400", "11-02 01:30-0500"]),
    (LORD_HOWE, "45 1 * * *", "2026-04-04", ["04-05 01:45+1100", "04-06 01:45+1030"]),
    (SANTIAGO, "30 23 * * *", "2026-04-04", ["04-04 23:30-0300", "04-05 23:30-0400"]),
    (KOLKATA, "30 2 * * *", "2026-10-24", ["10-25 02:30+0530", "10-26 02:30+0530"]),
]


@pytest.mark.parametrize(("tz", "expression", "day", "expected"), TABLE)
def test_a_time_of_day_comes_once_a_day_whatever_the_clocks_do(
    tz: str, expression: str, day: str, expected: list[str]
) -> None:
    noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo(tz))

    assert shown(expression, tz, noon, 2) == expected


@pytest.mark.parametrize(
    ("tz", "before", "minutes"),
    [
        (PARIS, datetime(2026, 3, 29, 0, 50, tzinfo=UTC), 60),
        (PARIS, datetime(2026, 10, 24, 23, 50, tzinfo=UTC), 60),
        (NEW_YORK, datetime(2026, 3, 8, 5, 50, tzinfo=UTC), 60),
        (NEW_YORK, datetime(2026, 11, 1, 4, 50, tzinfo=UTC), 60),
        (SANTIAGO, datetime(2026, 4, 5, 1, 50, tzinfo=UTC), 60),
        (LORD_HOWE, datetime(2026, 10, 3, 14, 50, tzinfo=UTC), 30),
        (LORD_HOWE, datetime(2026, 4, 4, 13, 50, tzinfo=UTC), 30),
        (KOLKATA, datetime(2026, 3, 29, 0, 10, tzinfo=UTC), 60),
    ],
)
def test_what_comes_every_hour_goes_on_through_every_change(
    tz: str, before: datetime, minutes: int
) -> None:
    ticks = list(islice(ticks_after(f"*/{minutes} * * * *", tz, before), 6))

    assert {later - earlier for earlier, later in pairwise(ticks)} == {timedelta(minutes=minutes)}


@pytest.mark.parametrize(
    ("expression", "spring", "autumn"),
    [
        (
            "0 * * * *",
            ["03-29 01:00+0100", "03-29 03:00+0200", "03-29 04:00+0200"],
            ["10-25 01:00+0200", "10-25 02:00+0200", "10-25 02:00+0100"],
        ),
        (
            "30 */2 * * *",
            ["03-29 04:30+0200", "03-29 06:30+0200", "03-29 08:30+0200"],
            ["10-25 02:30+0200", "10-25 02:30+0100", "10-25 04:30+0100"],
        ),
        (
            "*/30 2 * * *",
            ["03-30 02:00+0200", "03-30 02:30+0200", "03-31 02:00+0200"],
            ["10-25 02:00+0200", "10-25 02:30+0200", "10-25 02:00+0100"],
        ),
    ],
)
def test_with_a_star_the_hands_of_the_clock_are_taken_at_their_word(
    expression: str, spring: list[str], autumn: list[str]
) -> None:
    nights = [datetime(2026, 3, 29, 0, 40), datetime(2026, 10, 25, 0, 40)]

    seen = [shown(expression, PARIS, n.replace(tzinfo=ZoneInfo(PARIS)), 3) for n in nights]

    assert seen == [spring, autumn]


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 0 L * *", ["01-31", "02-28"]),
        ("0 0 LW * *", ["01-30", "02-27"]),
        ("0 0 * * 5L", ["01-30", "02-27"]),
        ("0 0 * * 5#3", ["01-16", "02-20"]),
        ("0 0 * FEB MON-FRI", ["02-02", "02-03"]),
        ("0 0 13 * 5", ["01-02", "01-09", "01-13"]),
        ("0 0 */10 * 5", ["05-01", "07-31"]),
    ],
)
def test_days_match_the_documentation(expression: str, days: list[str]) -> None:
    new_year = datetime(2026, 1, 1, tzinfo=UTC)

    seen = shown(expression, "UTC", new_year, len(days))

    assert [day[:5] for day in seen] == days


def test_with_seconds_the_hands_of_the_clock_are_taken_at_their_word() -> None:
    spring = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo(PARIS))
    autumn = datetime(2026, 10, 24, 12, tzinfo=ZoneInfo(PARIS))

    assert shown("0 30 2 * * *", PARIS, spring, 1) == ["03-30 02:30+0200"]
    assert shown("0 30 2 * * *", PARIS, autumn, 2) == ["10-25 02:30+0200", "10-25 02:30+0100"]


def test_two_times_of_which_one_is_skipped_both_come() -> None:
    spring = datetime(2026, 3, 29, 0, 30, tzinfo=ZoneInfo(PARIS))

    assert shown("15 1-3 * * *", PARIS, spring, 3) == [
        "03-29 01:15+0100",
        "03-29 03:00+0200",
        "03-29 03:15+0200",
    ]


def test_a_tick_does_not_repeat_in_the_repeated_hour() -> None:
    second_showing = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10, for the second time

    assert next_after("30 2 * * *", PARIS, second_showing) == datetime(
        2026, 10, 26, 1, 30, tzinfo=UTC
    )


EXPRESSIONS = [
    "30 2 * * *",
    "*/20 * * * *",
    "0 */3 * * *",
    "15 1-4 * * *",
    "0 0 * * 0",
    "7 2 1 * *",
]


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from([PARIS, NEW_YORK, LORD_HOWE, SANTIAGO, KOLKATA, "UTC"]),
    st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),
)
def test_ticks_increase_and_do_not_depend_on_the_start(
    expression: str, tz: str, moment: datetime
) -> None:
    together = list(islice(ticks_after(expression, tz, moment), 12))

    one_by_one = [moment]
    for _ in together:
        one_by_one.append(next_after(expression, tz, one_by_one[-1]))
    assert one_by_one[1:] == together
    assert all(earlier < later for earlier, later in pairwise(one_by_one))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 3 * * *", "at 03:00 every day"),
        ("*/5 * * * *", "every fifth minute of every hour"),
        ("30 2 1 * *", "at 02:30 on the first day of every month"),
        ("0 9,17 * * MON-FRI", "at 09:00 and 17:00 on Monday through Friday"),
        ("0 0 L * *", "at 00:00 on the last day of every month"),
        ("*/10 * * * * *", "every 10th second of every minute"),
    ],
)
def test_an_expression_in_words(expression: str, words: str) -> None:
    assert cron_in_words(expression) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(cron="0 3 * * *"), "at 03:00 every day, UTC"),
        (Rule(every=timedelta(hours=1)), "every hour"),
        (Rule(every=timedelta(days=14)), "every 2 weeks"),
        (Rule(every=timedelta(seconds=90)), "every 90 seconds"),
        (Rule(every=timedelta(microseconds=1500)), "every 0.0015 seconds"),
        (Rule(), "when its handler says"),
    ],
)
def test_a_rule_in_words(rule: Rule, words: str) -> None:
    assert in_words(rule) == words


@pytest.mark.parametrize("wrong", ["", "* * * *", "61 * * * *", "a b c d e", "0 0 31 2 *", None, 5])
def test_an_invalid_expression_is_rejected(wrong: object) -> None:
    with pytest.raises(InvalidValue, match="write five fields"):
        check_cron(wrong)


def test_a_moment_that_never_comes_is_refused() -> None:
    with pytest.raises(InvalidValue, match="never matches a date"):
        check_cron("0 0 */30 2 1#5")


@pytest.mark.parametrize("wrong", ["Mars/Olympus", "", "../etc/passwd", "Europe"])
def test_a_zone_that_is_not_there_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidValue, match="such as Europe/Paris"):
        zone(wrong)


def shown(expression: str, tz: str, moment: datetime, count: int) -> list[str]:
    ticks = islice(ticks_after(expression, tz, moment), count)
    return [tick.astimezone(ZoneInfo(tz)).strftime("%m-%d %H:%M%z") for tick in ticks]
