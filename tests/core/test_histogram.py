"""Histograms: percentiles err by at most 10%, and merging adds."""

from collections import Counter
from math import ceil, inf, nan

from hypothesis import given
from hypothesis import strategies as st

from forge.core.histogram import (
    LAST_BUCKET,
    bucket_of,
    buckets_of,
    marks_of,
    percentile,
    seconds_of,
)

durations = st.floats(min_value=2**-20, max_value=2**28)
many = st.lists(durations, min_size=1, max_size=200)
shares = st.sampled_from((0.01, 0.5, 0.95, 0.99, 1.0))


@given(many, shares)
def test_percentiles_err_by_at_most_ten_percent(values: list[float], share: float) -> None:
    exact = sorted(values)[ceil(share * len(values)) - 1]

    found = percentile(buckets_of(Counter(marks_of(values))), share)

    assert found is not None
    assert abs(found - exact) <= 0.1 * exact


@given(many, many, shares)
def test_the_histogram_of_two_lists_is_the_sum_of_their_histograms(
    some: list[float], others: list[float], share: float
) -> None:
    together = buckets_of(Counter(marks_of(some + others)))

    parts = Counter(buckets_of(Counter(marks_of(some))))
    parts.update(buckets_of(Counter(marks_of(others))))

    assert together == dict(parts)
    assert percentile(together, share) == percentile(parts, share)


@given(durations, durations)
def test_buckets_are_in_the_order_of_durations(one: float, other: float) -> None:
    smaller, larger = sorted((one, other))

    assert bucket_of(smaller) <= bucket_of(larger)


@given(st.integers(min_value=1, max_value=LAST_BUCKET))
def test_the_duration_of_a_bucket_is_inside_of_it(bucket: int) -> None:
    assert bucket_of(seconds_of(bucket)) == bucket


def test_an_octave_has_four_buckets() -> None:
    assert len({bucket_of(1 + part / 1000) for part in range(1000)}) == 4
    assert bucket_of(2.0) == bucket_of(1.0) + 4


def test_what_is_no_duration_counts_as_none() -> None:
    assert {bucket_of(value) for value in (0.0, -0.003, -inf, inf, nan, 1e-9)} == {0}
    assert seconds_of(0) == 0.0
    assert bucket_of(1e300) == LAST_BUCKET
    assert percentile({}, 0.5) is None
