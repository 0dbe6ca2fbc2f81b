"""The log record of each event."""

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from forge.core.events import AttemptEnded, AttemptRefused, AttemptStopped, Events, JobsRescued
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import (
    Crashed,
    Expired,
    Failure,
    Outcome,
    Policy,
    Raised,
    Released,
    Returned,
    Snoozed,
    settle,
)
from forge.telemetry.logs.listener import JsonFormatter, TextFormatter, log_events, logger

FIELDS = {
    "job_id",
    "job_type",
    "attempt",
    "duration",
    "outcome",
    "error",
    "retries",
    "crashes",
    "state",
    "tenant_id",
    "correlation_id",
}
JOB = Job(
    id=UUID(int=1),
    lease=2,
    type="export",
    input="{}",
    attempt=2,
    max_attempts=3,
    due=1_900_000_000.0,
    crashes=0,
    lone_crashes=0,
    is_suspect=False,
    timeout=None,
    expired=None,
    tenant_id=7,
    correlation_id=UUID(int=5),
    auth=None,
    checkpoint=None,
    queue="default",
    worker_capability=None,
    priority=50,
    traceparent=None,
    category=None,
)


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(before)


@pytest.mark.parametrize(
    ("outcome", "said", "state", "level"),
    [
        (Returned(None), "completed", "completed", "INFO"),
        (Raised(Failure("E", "m", "")), "retry", "failed_retryable", "WARNING"),
        (Raised(Failure("E", "m", "", "non_retryable")), "dead_letter", "failed", "ERROR"),
        (Raised(Failure("E", "m", "", is_loss=True)), "lost", "failed_retryable", "WARNING"),
        (Snoozed(timedelta(seconds=1)), "snoozed", "queued", "INFO"),
        (Released(), "released", "queued", "INFO"),
        (Expired(), "expired", "failed", "ERROR"),
        (Crashed("signal SIGKILL"), "crashed", "failed_retryable", "WARNING"),
    ],
)
def test_each_outcome_is_one_record_with_all_its_fields(
    caplog: pytest.LogCaptureFixture, outcome: Outcome, said: str, state: str, level: str
) -> None:
    events = Events()
    log_events(events)

    events.emit(ended(outcome))

    (record,) = caplog.records
    written = json.loads(JsonFormatter().format(record))
    assert written.keys() >= FIELDS
    assert (written["outcome"], written["state"], record.levelname) == (said, state, level)
    assert (written["attempt"], written["retries"], written["duration"]) == (2, 1, 0.25)
    assert (written["tenant_id"], written["correlation_id"]) == (7, str(UUID(int=5)))
    assert (written["error"] is None) == (level == "INFO")


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (Returned(None), "completed in 0.250 s, attempt 2 of 3"),
        (
            Raised(Failure("E", "m", "", "rate_limited", timedelta(seconds=90))),
            "failed after 0.250 s, attempt 2 of 3, next attempt in 90.0 s: E: m",
        ),
        (
            Raised(Failure("E", "m", "", "non_retryable")),
            "became a dead letter after 0.250 s, attempt 2 of 3: E: m",
        ),
        (
            Snoozed(timedelta(minutes=5)),
            "snoozed after 0.250 s, attempt 2 of 3, next attempt in 300.0 s",
        ),
    ],
)
def test_the_line_has_the_duration_and_the_delay_of_the_next_attempt(
    caplog: pytest.LogCaptureFixture, outcome: Outcome, line: str
) -> None:
    events = Events()
    log_events(events)

    events.emit(ended(outcome))

    assert [record.getMessage() for record in caplog.records] == [f"export {JOB.id} {line}"]


def test_the_words_of_a_job_command_no_terminal_and_pass_for_no_other_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = Events()
    log_events(events)

    events.emit(ended(Raised(Failure("E", "\x1b]0;owned\x07\n2030-01-01 all is well", ""))))

    (record,) = caplog.records
    (line,) = TextFormatter().format(record).splitlines()
    assert line.endswith(r": E: \x1b]0;owned\x07 2030-01-01 all is well")
    assert json.loads(JsonFormatter().format(record))["error"].count("\n") == 1


def test_other_events_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    log_events(events)

    events.emit(AttemptStopped(JOB, 0.1, Status.CANCELLED))
    events.emit(AttemptRefused(uuid4(), 3, "complete"))
    events.emit(JobsRescued((uuid4(),), (uuid4(),)))
    events.notice("error", "something broke", error="why")

    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3 + ["ERROR"]
    assert "why" in caplog.messages[-1]
    assert caplog.records[0].__dict__.keys() >= FIELDS


def test_where_nothing_would_be_written_nothing_is_listened_to() -> None:
    events = Events()
    logger.setLevel(logging.CRITICAL + 1)

    log_events(events)

    assert events.listeners == events.other_listeners == events.completion_listeners == []


def test_success_is_not_looked_at_when_only_failures_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = Events()
    logger.setLevel(logging.WARNING)
    log_events(events)

    events.emit(ended(Raised(Failure("E", "m", ""))))

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert events.listeners == events.completion_listeners == []


def ended(outcome: Outcome) -> AttemptEnded:
    policy = Policy(retry=None, dead_letter=True, crash_limit=3)
    return AttemptEnded(JOB, outcome, settle(JOB, outcome, policy, 0.5), 0.25)
