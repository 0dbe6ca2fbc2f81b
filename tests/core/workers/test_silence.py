"""When a worker that is not heard has to stop its handlers."""

from hypothesis import given
from hypothesis import strategies as st

from forge.core.workers.clock import SilenceClock

MOMENTS = st.floats(0, 1e6)


@given(st.floats(0.1, 600), MOMENTS)
def test_handlers_stop_before_another_worker_may_take_their_jobs(dead: float, sent: float) -> None:
    silence = SilenceClock(dead)
    silence.heard(sent)

    assert 0 < silence.until_stop(sent) < dead
    assert dead - silence.until_stop(sent) <= 1 + 1e-6


def test_nothing_new_begins_in_the_margin() -> None:
    silence = SilenceClock(6)
    silence.heard(100)

    assert silence.margin == 1
    assert silence.is_heard(104.9)
    assert not silence.is_heard(105)


def test_a_refusal_puts_the_stop_off_but_is_no_heartbeat() -> None:
    silence = SilenceClock(6)
    silence.heard(100)
    silence.refused(110)

    assert silence.until_stop(110) == 5
    assert not silence.is_heard(110)


def test_an_answer_that_comes_late_counts_from_when_it_was_asked_for() -> None:
    silence = SilenceClock(6)
    silence.heard(100)
    silence.refused(90)

    assert silence.until_stop(100) == 5
