import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.core.duration import MAX_DURATION, format_duration, parse_duration
from forge.core.errors import ForgeError, InvalidValue


@pytest.mark.parametrize(
    ("written", "duration"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("1000ms", timedelta(seconds=1)),
        ("7d", timedelta(days=7)),
        ("007s", timedelta(seconds=7)),
        (timedelta(seconds=1.5), timedelta(milliseconds=1500)),
    ],
)
def test_a_duration_is_read(written: str | timedelta, duration: timedelta) -> None:
    assert parse_duration(written) == duration


@pytest.mark.parametrize(
    "value",
    ["", "30", "s", "30 s", " 30s", "30s\n", "1.5h", "30S", "1h30m", "٣s", "+3s", "30min", "--3s"],
)
def test_invalid_text_is_rejected_with_the_allowed_forms(value: str) -> None:
    refuse_and_say_what_is_allowed(value)


@pytest.mark.parametrize("value", [30, 1.5, True, None, b"30s", []])
def test_invalid_values_are_rejected_with_the_allowed_forms(value: object) -> None:
    refuse_and_say_what_is_allowed(value)


def refuse_and_say_what_is_allowed(value: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_duration(value, what="retry delay")

    message = str(refused.value)
    assert message.startswith("retry delay ")
    assert "is not a duration" in message
    assert '"30s", "5m", "2h", "1000ms" or "7d", or pass a timedelta' in message


@pytest.mark.parametrize("value", ["0s", "0ms", "-5s", timedelta(0), timedelta(seconds=-1)])
def test_zero_and_less_are_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="timeout must be more than zero"):
        parse_duration(value)


def test_zero_is_taken_where_it_makes_sense() -> None:
    assert parse_duration("0s", allow_zero=True) == timedelta(0)

    with pytest.raises(InvalidValue, match="must be zero or more"):
        parse_duration("-1s", allow_zero=True)


@pytest.mark.parametrize(
    "value",
    ["36501d", "9" * 18 + "d", "9" * 18 + "ms", "9" * 19 + "s", "9" * 5000 + "s", timedelta.max],
)
def test_what_would_overflow_a_deadline_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="timeout must be at most 36500d") as refused:
        parse_duration(value)

    assert len(str(refused.value)) < 200


def test_the_error_is_both_ours_and_a_value_error() -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_duration("soon")

    assert isinstance(refused.value, ForgeError)
    assert isinstance(refused.value, ValueError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    ("duration", "written"),
    [
        (timedelta(days=7), "7d"),
        (timedelta(hours=24), "1d"),
        (timedelta(hours=25), "25h"),
        (timedelta(seconds=90), "90s"),
        (timedelta(minutes=90), "90m"),
        (timedelta(seconds=1.5), "1500ms"),
        (timedelta(microseconds=1), "1us"),
        (timedelta(0), "0s"),
        (timedelta(seconds=-5), "-5s"),
    ],
)
def test_a_duration_is_written_in_its_shortest_exact_form(
    duration: timedelta, written: str
) -> None:
    assert format_duration(duration) == written


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=MAX_DURATION))
def test_a_formatted_duration_parses_to_the_same_value(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
