"""Tests of your jobs: the worker's own parts and SQL, on a database of each test's own."""

from forge.config.test_guard import NotATestDatabase
from forge.testing.attempt_memory import EndedAttempt
from forge.testing.calls import Called, RecordingContext, call
from forge.testing.cases import ForgeTestCase
from forge.testing.expectations import (
    assert_dispatched,
    assert_not_dispatched,
    dispatched,
    within,
)
from forge.testing.runs import NotIdle, Summary, advance, run_all, run_one

__all__ = [
    "Called",
    "EndedAttempt",
    "ForgeTestCase",
    "NotATestDatabase",
    "NotIdle",
    "RecordingContext",
    "Summary",
    "advance",
    "assert_dispatched",
    "assert_not_dispatched",
    "call",
    "dispatched",
    "run_all",
    "run_one",
    "within",
]
