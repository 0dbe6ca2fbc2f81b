"""Retry delays stay within their bounds for every attempt, class and chance."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.core.errors import InvalidValue
from forge.core.retry import MAX_DELAY, Retry, retry_delay

attempts = st.integers(1, 1_000_000)
chances = st.floats(0, 1, exclude_max=True)
caps = st.timedeltas(timedelta(milliseconds=1), timedelta(days=365))
backoffs = st.sampled_from(["fixed", "linear", "exponential"])
policies = st.builds(Retry, max_attempts=st.none(), backoff=backoffs, max_backoff=caps)
may_try_again = st.sampled_from([None, "transient", "retryable"])


@given(attempts, policies, may_try_again, chances)
def test_a_declared_policy_is_kept_with_a_tenth_of_jitter_at_most(
    attempt: int, policy: Retry, error_class: str | None, chance: float
) -> None:
    delay = _delay(attempt, policy, error_class, chance)

    bare = policy.seconds_after(attempt)
    assert bare <= delay <= bare * 1.1
    assert bare <= policy.max_backoff.total_seconds()


@given(attempts, policies)
def test_a_delay_never_shrinks_from_one_attempt_to_the_next(attempt: int, policy: Retry) -> None:
    assert policy.seconds_after(attempt) <= policy.seconds_after(attempt + 1)


@given(attempts, chances)
def test_without_a_class_delays_double_from_a_second_up_to_five_minutes(
    attempt: int, chance: float
) -> None:
    delay = _delay(attempt, None, None, chance)

    bare = min(2.0 ** min(attempt - 1, 20), 300)
    assert bare <= delay <= bare * 1.1


@given(attempts, st.sampled_from(["transient", "retryable"]), chances)
def test_with_a_class_delays_are_two_to_the_n_give_or_take_a_fifth_up_to_five_minutes(
    attempt: int, error_class: str, chance: float
) -> None:
    delay = _delay(attempt, None, error_class, chance)

    bare = 2.0 ** min(attempt, 20)
    assert min(bare * 0.8, 300) <= delay <= min(bare * 1.2, 300)


@given(st.integers(1, 15), st.none() | policies, chances)
def test_rate_limited_delays_start_at_a_minute_and_double(
    attempt: int, policy: Retry | None, chance: float
) -> None:
    assert _delay(attempt, policy, "rate_limited", chance) == 60 * 2 ** (attempt - 1)


@given(attempts, st.none() | policies, may_try_again, caps, chances)
def test_retry_after_takes_precedence(
    attempt: int,
    policy: Retry | None,
    error_class: str | None,
    retry_after: timedelta,
    chance: float,
) -> None:
    delay = retry_delay(
        attempt, declared=policy, error_class=error_class, retry_after=retry_after, chance=chance
    )

    assert delay == retry_after.total_seconds()


@given(attempts, st.none() | policies, st.none() | st.text(), chances)
def test_no_delay_is_longer_than_a_year_or_negative(
    attempt: int, policy: Retry | None, error_class: str | None, chance: float
) -> None:
    assert 0 <= _delay(attempt, policy, error_class, chance) <= MAX_DELAY * 1.1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"backoff": "quadratic"}, "'fixed', 'linear', 'exponential'"),
        ({"max_attempts": 0}, "from 1 to 1,000,000"),
        ({"max_attempts": True}, "from 1 to 1,000,000"),
        ({"max_attempts": "3"}, "from 1 to 1,000,000"),
        ({"max_backoff": "soon"}, '"30s"'),
        ({"max_backoff": "0s"}, "more than zero"),
    ],
)
def test_an_invalid_policy_error_lists_allowed_values(
    arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        Retry(**arguments)  # type: ignore[arg-type]

    assert says in str(refused.value)


def _delay(attempt: int, policy: Retry | None, error_class: str | None, chance: float) -> float:
    return retry_delay(
        attempt, declared=policy, error_class=error_class, retry_after=None, chance=chance
    )
