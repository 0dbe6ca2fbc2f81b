"""Which workers a wake-up is for."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from forge.core.workers.wakeups import EVERYONE, SPARE, call, is_called

PEERS = [UUID(int=number) for number in range(50)]


def called(payload: str) -> list[UUID]:
    return [peer for peer in PEERS if is_called(payload, peer, PEERS)]


@given(st.integers(1, 100), st.integers(0, 2**31))
def test_one_job_calls_a_few_and_many_jobs_call_all(jobs: int, nonce: int) -> None:
    assert len(called(call(jobs, nonce))) == min(jobs + SPARE, len(PEERS))


def test_everyone_gets_a_turn() -> None:
    turns = {peer for nonce in range(500) for peer in called(call(1, nonce))}

    assert turns == set(PEERS)


def test_a_call_without_lots_is_for_everyone() -> None:
    assert called(EVERYONE) == PEERS
    assert called("something else") == PEERS


def test_a_worker_that_is_not_counted_yet_looks_for_itself() -> None:
    assert is_called(call(1, 7), UUID(int=999), PEERS)
