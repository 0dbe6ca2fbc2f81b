"""Schedules against a model of them: any order of verbs, on the real database."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from forge import Forge, ScheduleContext
from forge.core.outcome import Crashed, Failure, Raised, Released, Returned
from forge.core.schedules.run import Run, conclude, write_next
from forge.core.workers.lanes import BEGINNING
from forge.schedules import verbs
from forge.schedules.verbs import Name, NewSchedule
from forge.store import schedules
from forge.store.jobs import LaneCursor
from tests.store.placing import registered
from tests.worker.model.machine import DatabaseMachine, run_machine

KEYS = ("a", "b", "c")
HOUR = timedelta(hours=1)
# Time is counted in hours and moved in the rows, so that the seconds a test takes do not matter.
SHIFT = """
    update forge_schedules set next_run_at = next_run_at - make_interval(hours => $1),
        tick_at = tick_at - make_interval(hours => $1),
        running_since = running_since - make_interval(hours => $1)
"""
PLAN = "update forge_schedules set next_run_at = now() + make_interval(hours => $2) where key = $1"
ROWS = """
    select key, enabled, running_since is not null as running, worker_id, lease,
        consecutive_failures, last_run_at is not null as has_run,
        last_error is not null as has_error,
        round(extract(epoch from next_run_at - now()) / 3600) as due_in, crashes, suspect,
        jsonb_array_length(recent_runs) as runs
    from forge_schedules
"""


@dataclass
class Modelled:
    """What the model knows of one schedule; times are in hours from now."""

    due_in: int
    enabled: bool = True
    owner: UUID | None = None
    running: bool = False
    lease: int = 0
    failures: int = 0
    crashes: int = 0
    suspect: bool = False
    has_run: bool = False
    has_error: bool = False
    runs: int = 0
    # Whether a request moved it during its run.
    moved: bool = False

    @property
    def is_due(self) -> bool:
        return self.enabled and not self.running and self.due_in <= 0

    def take(self, owner: UUID) -> None:
        self.lease, self.owner, self.running, self.moved = self.lease + 1, owner, True, False

    def end(self, due_in: int | None) -> None:
        self.running, self.runs = False, min(self.runs + 1, schedules.MAX_RECENT_RUNS)
        if not self.moved and due_in is not None:
            self.due_in = due_in


class ScheduleMachine(DatabaseMachine):
    """Drives the database and the model together, and compares them after every step."""

    runs = Bundle("runs")

    @initialize()
    def begin(self) -> None:
        self.model: dict[str, Modelled] = {}
        self._fetch("truncate forge_schedules, forge_workers")
        app = Forge()
        definition = app.schedule("work")(_work)
        self.encoder = self._await(app.catalog.find_schedule("work", definition, self.database.run))
        self.workers = [self._await(registered(self.database)) for _ in range(2)]

    @rule(key=st.sampled_from(KEYS))
    def ensure(self, key: str) -> None:
        new_job = NewSchedule(Name("work", key), None, {}, None, self.encoder)
        row = self._await(verbs.ensure(self.database.run, new_job))
        known = self.model.setdefault(key, Modelled(0))
        known.enabled = True
        assert (row.key, row.enabled, row.lease) == (key, True, known.lease)

    @rule(key=st.sampled_from(KEYS), hours=st.integers(-2, 3))
    def move(self, key: str, hours: int) -> None:
        self._fetch(PLAN, key, hours)
        if key in self.model:
            self.model[key].due_in, self.model[key].moved = hours, True

    @rule(key=st.sampled_from(KEYS), enabled=st.booleans())
    def enable(self, key: str, enabled: bool) -> None:
        if key in self.model:
            row = self._await(verbs.set_enabled(self.database.run, Name("work", key), enabled))
            self.model[key].enabled = enabled
            assert row.enabled is enabled

    @rule(key=st.sampled_from(KEYS))
    def run_now(self, key: str) -> None:
        known = self.model.get(key)
        if known is not None and known.enabled:
            self._await(verbs.run_now(self.database.run, Name("work", key)))
            known.due_in, known.moved = 0, True

    @rule(target=runs, who=st.integers(0, 1), limit=st.integers(1, 3))
    def claim(self, who: int, limit: int) -> Any:
        worker = self.workers[who]
        lanes = self._run(schedules.survey())
        places = [LaneCursor(lane.lane, *BEGINNING) for lane in lanes]
        taken: list[Run] = self._run(
            schedules.claim(
                places,
                limit,
                worker=worker.id,
                incarnation=worker.incarnation,
                rules={},
                lanes=lanes,
            )
        )

        due = [known for known in self.model.values() if known.is_due]
        assert len(taken) == min(limit, len(due))
        for run in taken:
            known = self.model[run.schedule.key]
            assert known.is_due
            known.take(worker.id)
            assert (run.lease, run.attempt, run.crashes, run.is_suspect) == (
                known.lease,
                known.failures + 1,
                known.crashes,
                known.suspect,
            )
        return multiple(*taken)

    @rule(run=consumes(runs), hours=st.integers(1, 4))
    def finish(self, run: Run, hours: int) -> None:
        known = self._ended(run, Returned(write_next(hours * HOUR)))
        if known is not None:
            known.end(hours)
            known.failures, known.crashes, known.suspect = 0, 0, False
            known.has_run, known.has_error = True, False

    @rule(run=consumes(runs))
    def fail(self, run: Run) -> None:
        failure = Failure("ValueError", "no", "", None, retry_after=2 * HOUR)
        known = self._ended(run, Raised(failure))
        if known is not None:
            known.end(2)
            known.failures, known.crashes, known.suspect = known.failures + 1, 0, False
            known.has_run = known.has_error = True

    @rule(run=consumes(runs))
    def lose(self, run: Run) -> None:
        """The database goes away under the handler."""
        gone = Failure("asyncpg.ConnectionDoesNotExistError", "gone", "", is_loss=True)
        known = self._ended(_never_crashed(run), Raised(gone))
        if known is not None:
            self._postpone(run, known)
            known.crashes, known.has_error = known.crashes + 1, True

    @rule(run=consumes(runs))
    def die_alone(self, run: Run) -> None:
        known = self._ended(run, Crashed("exit code 7"))
        if known is not None:
            self._postpone(run, known)
            known.failures, known.crashes = known.failures + 1, known.crashes + 1
            known.has_run = known.has_error = known.suspect = True

    @rule(run=consumes(runs), has_begun=st.booleans())
    def release(self, run: Run, has_begun: bool) -> None:
        known = self._ended(run, Released(has_begun))
        if known is None:
            return
        if has_begun:
            known.end(None)
            known.crashes += 1
        known.running = False

    @rule(run=runs)
    def beat(self, run: Run) -> None:
        update = schedules.RunUpdate(run.id, run.lease, None)
        assert bool(self._run(schedules.note([update]))) == self._is_current(run)

    @rule(who=st.integers(0, 1))
    def crash(self, who: int) -> None:
        """A worker dies, and another takes back what it ran."""
        owner = self.workers[who].id
        found = self._run(schedules.rescue([owner], dead_after=0, stale_after=0, limit=100))
        lost = [m for m in self.model.values() if m.running and m.owner == owner]
        assert len(found) == len(lost)
        for known in lost:
            known.end(None)
            known.crashes, known.has_error, known.suspect = known.crashes + 1, True, True

    @rule(hours=st.integers(1, 3))
    def time_passes(self, hours: int) -> None:
        self._fetch(SHIFT, hours)
        for known in self.model.values():
            known.due_in -= hours

    @invariant()
    def the_database_and_the_model_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        found = {row["key"]: row for row in self._fetch(ROWS)}
        assert found.keys() == self.model.keys()
        for key, known in self.model.items():
            row = found[key]
            assert (row["enabled"], row["running"], row["lease"], row["crashes"]) == (
                known.enabled,
                known.running,
                known.lease,
                known.crashes,
            )
            assert (row["consecutive_failures"], row["has_run"], row["has_error"]) == (
                known.failures,
                known.has_run,
                known.has_error,
            )
            assert (row["due_in"], row["runs"]) == (known.due_in, known.runs)
            assert row["suspect"] is known.suspect
            assert row["worker_id"] == known.owner

    def _ended(self, run: Run, outcome: Any) -> Modelled | None:
        """Conclude a run; return its schedule if this run still has the right to."""
        done = conclude(
            self._as_now(run), outcome, rule=run.schedule.rule, retry=None, seconds=0, chance=0
        )
        accepted = self._run(schedules.conclude([done]))
        assert bool(accepted) == self._is_current(run)
        return self.model[run.schedule.key] if accepted else None

    def _postpone(self, run: Run, known: Modelled) -> None:
        """It will be tried again within seconds or a minute, which the model does not count."""
        self._fetch(PLAN, run.schedule.key, 1)
        known.end(None)
        known.due_in = 1

    def _as_now(self, run: Run) -> Run:
        """Move the due time that the run knows along with the rows, unless a request moved it."""
        known = self.model[run.schedule.key]
        if known.moved or known.lease != run.lease:
            return run
        (row,) = self._fetch("select next_run_at from forge_schedules where id = $1", run.id)
        return _due(run, row["next_run_at"])

    def _is_current(self, run: Run) -> bool:
        known = self.model[run.schedule.key]
        return known.running and known.lease == run.lease


async def _work(ctx: ScheduleContext, payload: Any) -> None: ...


def _never_crashed(run: Run) -> Run:
    fresh = Run._make(run._replace(crashes=0))
    fresh.schedule = run.schedule
    return fresh


def _due(run: Run, at: datetime) -> Run:
    moved = Run._make(run)
    moved.schedule = replace(run.schedule, next_run_at=at)
    return moved


def test_any_order_of_verbs_leaves_the_schedules_as_the_model_says(database_url: str) -> None:
    run_machine(ScheduleMachine, database_url, examples=100)
