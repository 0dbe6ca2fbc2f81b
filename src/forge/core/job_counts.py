"""Counts of jobs by status and type, each with its precision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from forge.core.lifecycle import Status

Precision = Literal["exact", "at_least", "estimate"]


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """A count and its precision."""

    count: int
    precision: Precision


@dataclass(frozen=True, slots=True)
class CountsOfType:
    """Counts of one type; live jobs wait or are being processed."""

    live: BoundedCount
    all: BoundedCount


@dataclass(frozen=True, slots=True)
class CountedJobs:
    """Counts by status and by type."""

    by_status: Mapping[Status, BoundedCount]
    by_type: Mapping[str, CountsOfType]
