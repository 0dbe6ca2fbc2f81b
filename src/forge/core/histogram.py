"""Sparse histograms of durations: four buckets per octave, so that percentiles err by at most 10%.

A histogram maps buckets to counts, and histograms merge by addition. The buckets have the base
2^¼, with their bounds rounded to sixteenths of an octave: the first two bytes of a float name its
bucket, so that a thousand durations are counted without a loop in Python.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from math import ceil

# The first two bytes of a float: its sign, its exponent, and sixteenths of its octave.
Mark = int
# The bounds of an octave's buckets, in sixteenths: 1, 2^¼, 2^½ and 2^¾, rounded, and 2.
_BOUNDS = (0, 3, 7, 11, 16)
_QUARTERS = tuple(sum(part >= bound for bound in _BOUNDS[1:]) for part in range(16))
# Durations below 2^-20 s (about 1 µs) are in bucket 0, and those of 2^28 s (8 years) in the last.
_FIRST_OCTAVE = -20
_LAST_OCTAVE = 28
LAST_BUCKET = (_LAST_OCTAVE - _FIRST_OCTAVE) * 4 + 1
_EXPONENT_BIAS = 1023
# The marks of infinity and NaN; those of negative numbers are higher.
_NOT_FINITE = 0x7FF0
_FIRST_OF_FOUR = 3 if sys.byteorder == "little" else 0


def marks_of(seconds: Iterable[float]) -> "array[int]":
    """Return the mark of each duration."""
    return array("H", array("d", seconds).tobytes())[_FIRST_OF_FOUR::4]


def buckets_of(marks: Mapping[Mark, int]) -> dict[int, int]:
    """Return the histogram of counted marks, in the order of its buckets."""
    counted: Counter[int] = Counter()
    for mark, count in marks.items():
        counted[_bucket(mark)] += count
    return dict(sorted(counted.items()))


def bucket_of(seconds: float) -> int:
    """Return the bucket of one duration."""
    (mark,) = marks_of([seconds])
    return _bucket(mark)


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """Return the duration in seconds that this share of all does not exceed; None without any.

    >>> percentile({bucket_of(0.1): 95, bucket_of(3.0): 5}, 0.5)
    0.09703125
    """
    rank = ceil(share * sum(histogram.values()))
    for bucket in sorted(histogram):
        rank -= histogram[bucket]
        if rank <= 0:
            return seconds_of(bucket)
    return None


@cache
def seconds_of(bucket: int) -> float:
    """Return the duration whose relative distance to both bounds of a bucket is the same."""
    if bucket <= 0:
        return 0.0
    octave, quarter = divmod(bucket - 1, 4)
    lower, upper = (16 + _BOUNDS[quarter]) / 16, (16 + _BOUNDS[quarter + 1]) / 16
    return float(2 * lower * upper / (lower + upper) * 2.0 ** (octave + _FIRST_OCTAVE))


@cache
def _bucket(mark: Mark) -> int:
    if mark >= _NOT_FINITE:
        return 0  # clocks differ slightly, and SQL can schedule for -infinity
    exponent, part = divmod(mark, 16)
    octave = exponent - _EXPONENT_BIAS - _FIRST_OCTAVE
    return min(max(octave * 4 + _QUARTERS[part] + 1, 0), LAST_BUCKET) if octave >= 0 else 0
