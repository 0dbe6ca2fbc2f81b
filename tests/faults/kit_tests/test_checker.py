"""The checker catches every broken history and accepts correct ones."""

from __future__ import annotations

from tests.faults.kit.checker import Halt, Row, Verdict, check
from tests.faults.kit.history import Event, Kind


class Tape:
    """A handwritten history; each step is one second after the previous one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.halts: list[Halt] = []

    @property
    def now(self) -> float:
        return float(len(self.events) + len(self.halts))

    def step(self, kind: Kind, lease: int = 0, status: str = "") -> Tape:
        # The lease identifies the worker: here each attempt runs in its own process.
        event = Event(kind, "job", lease, f"worker-{lease}", status, 100 + lease, self.now)
        self.events.append(event)
        return self

    def dispatched(self) -> Tape:
        return self.step(Kind.DISPATCHING).step(Kind.DISPATCHED)

    def started(self, lease: int = 1) -> Tape:
        return self.step(Kind.CLAIMED, lease).step(Kind.STARTED, lease)

    def finished(self, lease: int = 1) -> Tape:
        return self.step(Kind.FINISHED, lease)

    def accepted(self, lease: int = 1, status: str = "completed") -> Tape:
        return self.step(Kind.ACCEPTED, lease, status)

    def halted(self, lease: int) -> Tape:
        self.halts.append(Halt(100 + lease, self.now))
        return self

    def heard_again(self, lease: int, since: float, dead_at: float = 0.0) -> Tape:
        event = Event(
            Kind.HEARD_AGAIN, "", pid=100 + lease, monotonic=self.now, since=since, dead_at=dead_at
        )
        self.events.append(event)
        return self

    def judged(self, status: str | None = "completed", lease: int = 1) -> Verdict:
        rows = [] if status is None else [Row("job", status, lease)]
        return check(self.events, rows, self.halts)


def test_a_normal_run_has_no_fault() -> None:
    verdict = Tape().dispatched().started().finished().accepted().judged()

    assert verdict.faults == {}
    assert verdict.duplicated == ()


def test_an_empty_history_has_no_fault() -> None:
    assert check([], []).faults == {}


def test_an_acknowledged_job_without_a_row_is_lost() -> None:
    verdict = Tape().dispatched().judged(status=None)

    assert verdict.faults == {"lost": ("job",)}


def test_an_acknowledged_job_that_never_ends_is_lost() -> None:
    verdict = Tape().dispatched().started().judged(status="running")

    assert verdict.faults == {"lost": ("job",)}


def test_a_job_completed_without_having_run_is_lost() -> None:
    verdict = Tape().dispatched().judged(status="completed", lease=0)

    assert verdict.faults == {"lost": ("job",)}


def test_a_cancelled_job_need_not_have_run() -> None:
    verdict = Tape().dispatched().judged(status="cancelled", lease=0)

    assert verdict.faults == {}


def test_an_unacknowledged_dispatch_may_be_missing() -> None:
    verdict = Tape().step(Kind.DISPATCHING).judged(status=None)

    assert verdict.faults == {}


def test_an_unacknowledged_dispatch_that_runs_is_recovered() -> None:
    verdict = Tape().step(Kind.DISPATCHING).started().finished().accepted().judged()

    assert verdict.faults == {}
    assert verdict.recovered == ("job",)


def test_a_job_that_was_never_dispatched_is_unexpected() -> None:
    verdict = Tape().started().finished().accepted().judged()

    assert verdict.faults == {"unexpected": ("job",)}


def test_a_job_of_a_killed_worker_may_run_again() -> None:
    tape = Tape().dispatched().started(1).halted(1).started(2).finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {}
    assert verdict.duplicated == ("job",)


def test_a_retried_job_may_run_again() -> None:
    tape = Tape().dispatched().started(1).finished(1).accepted(1, "retry")
    tape.started(2).finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {}
    assert verdict.duplicated == ("job",)


def test_a_second_attempt_beside_a_live_first_one_overlaps() -> None:
    tape = Tape().dispatched().started(1).started(2).finished(2).accepted(2).finished(1)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {"overlapping": ("job",), "unexplained": ("job",)}


def test_a_second_attempt_after_an_end_without_release_is_unexplained() -> None:
    tape = Tape().dispatched().started(1).finished(1).started(2).finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {"unexplained": ("job",)}


def test_a_halt_before_the_attempt_excuses_nothing() -> None:
    tape = Tape().dispatched().halted(1).started(1).started(2).finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {"overlapping": ("job",), "unexplained": ("job",)}


def test_a_halted_worker_without_heartbeats_may_be_declared_dead() -> None:
    """For example, it continues just in time, but its first heartbeat is lost."""
    tape = Tape().dispatched().halted(1).started(1).finished(1).started(2).finished(2).accepted(2)

    assert tape.heard_again(1, since=1).judged(lease=2).faults == {}


def test_a_worker_may_not_be_declared_dead_too_early() -> None:
    tape = Tape().dispatched().halted(1).started(1).finished(1).started(2).finished(2)
    too_late = tape.now

    verdict = tape.accepted(2).heard_again(1, since=1, dead_at=too_late).judged(lease=2)

    assert verdict.faults == {"unexplained": ("job",)}


def test_missing_heartbeats_without_a_halt_excuse_nothing() -> None:
    tape = Tape().dispatched().started(1).finished(1).started(2).finished(2).accepted(2)

    verdict = tape.heard_again(1, since=1).judged(lease=2)

    assert verdict.faults == {"unexplained": ("job",)}


def test_missing_heartbeats_before_the_attempt_excuse_nothing() -> None:
    tape = Tape().dispatched().halted(1).heard_again(1, since=1)
    tape.started(1).finished(1).started(2).finished(2).accepted(2)

    assert tape.judged(lease=2).faults == {"unexplained": ("job",)}


def test_a_halt_after_the_second_start_excuses_nothing() -> None:
    tape = Tape().dispatched().started(1).started(2).halted(1).finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {"overlapping": ("job",), "unexplained": ("job",)}


def test_a_halt_of_another_process_excuses_nothing() -> None:
    tape = Tape().dispatched().started(1).halted(7).started(2).finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {"overlapping": ("job",), "unexplained": ("job",)}


def test_a_rejected_write_of_a_paused_worker_is_no_fault() -> None:
    tape = Tape().dispatched().started(1).halted(1).started(2).finished(2).accepted(2)
    tape.finished(1)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {}


def test_without_a_fence_a_paused_worker_is_caught() -> None:
    tape = Tape().dispatched().started(1).halted(1).started(2).finished(2).accepted(2)
    tape.finished(1).accepted(1)

    verdict = tape.judged(lease=2)

    assert set(verdict.faults) == {"revived", "stale", "accepted_twice"}


def test_a_start_after_the_own_rescue_is_no_fault() -> None:
    tape = Tape().dispatched().halted(1).started(2).started(1).finished(2).accepted(2).finished(1)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {}
    assert verdict.duplicated == ("job",)


def test_a_start_after_a_later_lease_needs_a_halt() -> None:
    tape = Tape().dispatched().started(2).started(1).finished(2).accepted(2).finished(1)

    verdict = tape.judged(lease=2)

    assert set(verdict.faults) == {"overlapping", "unexplained"}


def test_a_child_may_start_while_its_worker_is_halted() -> None:
    tape = Tape().dispatched().step(Kind.CLAIMED, 1).halted(1).step(Kind.STARTED, 1)
    tape.started(2).finished(1).finished(2).accepted(2)

    assert tape.judged(lease=2).faults == {}


def test_without_a_fence_a_late_retry_is_caught() -> None:
    tape = Tape().dispatched().started(1).halted(1).started(2).finished(1).accepted(1, "retry")
    tape.finished(2).accepted(2)

    verdict = tape.judged(lease=2)

    assert verdict.faults == {"stale": ("job",)}


def test_an_ack_recorded_late_is_not_stale() -> None:
    tape = Tape().dispatched().started(1).finished(1).halted(1).started(2).finished(2)
    tape.accepted(2).accepted(1, "retry")

    verdict = tape.judged(lease=2)

    assert verdict.faults == {}


def test_a_claim_after_a_final_outcome_is_a_revival() -> None:
    tape = Tape().dispatched().started(1).finished(1).accepted(1).step(Kind.CLAIMED, 2)

    verdict = tape.judged(lease=1)

    assert verdict.faults == {"revived": ("job",)}


def test_a_row_that_leaves_a_final_status_is_a_revival() -> None:
    verdict = Tape().dispatched().started().finished().accepted().judged(status="pending")

    assert set(verdict.faults) == {"lost", "revived", "contradicted"}


def test_one_attempt_accepted_twice_is_caught() -> None:
    tape = Tape().dispatched().started().finished().accepted().accepted()

    assert tape.judged().faults == {"accepted_twice": ("job",)}


def test_a_row_that_contradicts_the_history_is_caught() -> None:
    verdict = Tape().dispatched().started().finished().accepted().judged(status="failed")

    assert verdict.faults == {"contradicted": ("job",)}


def test_the_verdict_reads_as_a_sentence() -> None:
    verdict = Tape().dispatched().judged(status=None)

    assert str(verdict).startswith("1 lost, 0 unexpected, 0 revived")
