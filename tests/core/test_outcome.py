"""Settling: whatever the outcome of an attempt, its job moves only as the lifecycle allows."""

from datetime import timedelta
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from forge.core.job import Job
from forge.core.lifecycle import FINAL, Status, allowed_moves
from forge.core.outcome import (
    MAX_LOSSES,
    Completion,
    Crashed,
    Expired,
    Failure,
    Outcome,
    Policy,
    Raised,
    Released,
    Returned,
    Settlement,
    Snoozed,
    settle,
)
from forge.core.retry import Retry

durations = st.timedeltas(timedelta(milliseconds=1), timedelta(days=400))
texts = st.text(max_size=20)
classes = st.sampled_from(["transient", "retryable", "rate_limited", "non_retryable", None])
failures = st.builds(
    Failure, texts, texts, texts, classes, st.none() | durations, texts, st.booleans()
)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Returned, st.none() | texts),
    st.builds(Raised, failures),
    st.builds(Snoozed, durations),
    st.builds(Expired),
    st.builds(Crashed, texts),
    st.builds(Released, st.booleans()),
)
retries = st.builds(
    Retry,
    max_attempts=st.none(),
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
    max_backoff=durations,
)
policies = st.builds(Policy, st.none() | retries, st.booleans(), st.integers(1, 5))
chances = st.floats(0, 1, exclude_max=True)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    most = draw(st.integers(1, 10))
    attempt = draw(st.integers(1, most))
    return Job(
        id=UUID(int=draw(st.integers(0, 2**128 - 1))),
        lease=attempt + draw(st.integers(0, 20)),
        type="work",
        input="{}",
        attempt=attempt,
        max_attempts=most,
        due=1_800_000_000.0,
        crashes=draw(st.integers(0, 2 * MAX_LOSSES)),
        lone_crashes=draw(st.integers(0, 5)),
        is_suspect=draw(st.booleans()),
        timeout=None,
        expired=False,
        tenant_id=None,
        correlation_id=None,
        auth=None,
        checkpoint=None,
        queue="default",
        worker_capability=None,
        priority=50,
        traceparent=None,
        category=None,
    )


@given(jobs(), outcomes, policies, chances)
def test_every_outcome_is_a_move_that_the_lifecycle_allows_without_a_new_lease(
    job: Job, outcome: Outcome, policy: Policy, chance: float
) -> None:
    ack = settle(job, outcome, policy, chance)

    assert (ack.id, ack.lease) == (job.id, job.lease)
    sources = _sources(ack)
    assert sources
    for start in sources:
        assert 0 in allowed_moves().get((start, _end(ack)), set())


@given(jobs(), outcomes, policies, chances)
def test_a_job_that_will_run_again_is_given_a_time_and_one_that_ends_is_not(
    job: Job, outcome: Outcome, policy: Policy, chance: float
) -> None:
    ack = settle(job, outcome, policy, chance)

    assume(isinstance(ack, Settlement) and not isinstance(outcome, Released))
    assert (ack.delay is None) == (ack.status in FINAL)
    assert ack.delay is None or ack.delay >= 0


@given(jobs(), outcomes, policies, chances)
def test_an_attempt_is_used_up_only_by_an_error_of_the_handler_or_by_expiry(
    job: Job, outcome: Outcome, policy: Policy, chance: float
) -> None:
    ack = settle(job, outcome, policy, chance)

    given_back = ack.given_back if isinstance(ack, Settlement) else 0
    is_used_up = isinstance(outcome, Returned | Raised | Expired) and not _is_lost(job, outcome)
    assert given_back == (0 if is_used_up else 1)


@given(jobs(), failures, policies, chances)
def test_a_failure_is_tried_again_exactly_while_attempts_are_left_and_it_may_be(
    job: Job, failure: Failure, policy: Policy, chance: float
) -> None:
    ack = settle(job, Raised(failure), policy, chance)

    has_attempts = job.attempt < job.max_attempts and failure.error_class != "non_retryable"
    may = has_attempts or _is_lost(job, Raised(failure))
    buried = Status.DEAD_LETTER if policy.dead_letter else Status.FAILED
    assert _end(ack) is (Status.RETRY if may else buried)


@given(jobs(), policies, chances)
def test_a_job_is_poison_once_it_died_alone_as_often_as_the_limit_says(
    job: Job, policy: Policy, chance: float
) -> None:
    ack = settle(job, Crashed("signal SIGKILL"), policy, chance)

    assert isinstance(ack, Settlement)
    assert (ack.status in FINAL) == (job.lone_crashes + 1 >= policy.crash_limit)
    assert (ack.crashes, ack.lone_crashes, ack.outcome) == (1, 1, "crashed")


@given(jobs(), failures, policies, chances)
def test_a_lost_database_costs_no_attempt_until_it_was_lost_too_often(
    job: Job, failure: Failure, policy: Policy, chance: float
) -> None:
    ack = settle(job, Raised(failure._replace(is_loss=True)), policy, chance)

    assert isinstance(ack, Settlement)
    is_lost = job.crashes < MAX_LOSSES
    assert (ack.given_back == 1) == (ack.crashes == 1) == (ack.outcome == "lost") == is_lost
    assert ack.lone_crashes == 0


@given(jobs(), outcomes, policies, chances)
def test_what_was_ended_by_us_is_counted_and_recorded_and_nothing_else_is_counted(
    job: Job, outcome: Outcome, policy: Policy, chance: float
) -> None:
    ack = settle(job, outcome, policy, chance)

    is_ours = outcome == Released(True) or isinstance(outcome, Crashed) or _is_lost(job, outcome)
    if isinstance(ack, Settlement):
        assert ack.crashes == is_ours
        assert (ack.outcome in ("released", "crashed", "lost")) == is_ours
    else:
        assert not is_ours


def _is_lost(job: Job, outcome: Outcome) -> bool:
    is_loss = isinstance(outcome, Raised) and outcome.failure.is_loss
    return is_loss and job.crashes < MAX_LOSSES


def _sources(ack: Completion | Settlement) -> list[Status]:
    if isinstance(ack, Completion):
        return [Status.RUNNING]
    return [Status(word) for word in ack.allowed.split()]


def _end(ack: Completion | Settlement) -> Status:
    return Status.COMPLETED if isinstance(ack, Completion) else ack.status
