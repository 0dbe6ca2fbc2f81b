"""Running attempts: a job goes in, an outcome comes out, whatever its handler does."""

import asyncio
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

from forge.app import Forge
from forge.core.duration import parse_duration
from forge.core.errors import TimedOut
from forge.core.event import AttemptEnded
from forge.core.job import Job
from forge.core.outcome import (
    Ack,
    Completion,
    Crashed,
    Expired,
    Failure,
    Outcome,
    Policy,
    Raised,
    Released,
    Returned,
    Settled,
    Settlement,
    Snoozed,
    released,
    settle,
)
from forge.core.run import Run
from forge.core.signals import Snooze
from forge.registry import JobDefinition
from forge.store.jobs import Note, add_output
from forge.telemetry.attempt_records import CURRENT_JOB
from forge.worker.acker import Acker
from forge.worker.attempt import Attempt, Stop
from forge.worker.children import Children
from forge.worker.context import JobContext
from forge.worker.django_connections import close_stale_connections_of_async_code
from forge.worker.forks import leave_if_copied
from forge.worker.insist import insist
from forge.worker.live_attempts import LiveAttempts
from forge.worker.notes import Notes
from forge.worker.recurrence import Recurrence
from forge.worker.schedule_context import ScheduleContext
from forge.worker.slots import Slots
from forge.worker.stopped import StoppedAttempts
from forge.worker.surroundings import InLoop
from forge.worker.threads import run_in_thread

# How many seconds an attempt takes as long as nothing better is known.
SLOW = 1.0


class Runner:
    """The slots of a worker and what runs in them."""

    def __init__(
        self,
        app: Forge,
        definitions: dict[str, JobDefinition[Any, Any]],
        acker: Acker,
        policies: Mapping[str, Policy],
        notes: Notes,
        around: InLoop,
        children: Children,
        stopped: StoppedAttempts,
        recurrence: Recurrence | None = None,
    ) -> None:
        self._app = app
        self._definitions = definitions
        self._acker = acker
        self._notes = notes
        self._around = around
        self._children = children
        self._stopped = stopped
        self._recurrence = recurrence
        self._events = app.events
        self._policies = policies
        self._middlewares = app.middlewares[::-1]
        self._threads = ThreadPoolExecutor(app.config.worker.max_concurrent, "forge-handler")
        self._loop = asyncio.get_running_loop()
        self._slots = Slots(self._attempt)
        self.running = LiveAttempts(self._slots.take)
        self.requests_running = 0
        self.mean_seconds = SLOW
        self.slot_freed: Callable[[], None] = lambda: None
        self.request_ended: Callable[[], None] = lambda: None

    @property
    def slots_taken(self) -> int:
        """How many attempts hold a slot; requests that were started beside the slots do not."""
        return len(self.running) - self.requests_running

    def start(self, job: Job, *, takes_slot: bool = True) -> None:
        """Run a job, in a slot or, where it is a short request, beside the slots."""
        if isinstance(job, Run):
            self._start_run(job)
            return
        definition = self._definitions.get(job.type)
        if definition is None:
            # Two lanes whose names hash alike: next to impossible, and not worth a worker.
            self._acker.ack(released(job.id, job.lease), None)
            return
        attempt = Attempt(job, definition, takes_slot=takes_slot)
        self.requests_running += not takes_slot
        around = self._around.in_threads if attempt.definition.kind == "thread" else self._around
        attempt.context = JobContext(job, around)
        self.running.add(attempt)

    def _start_run(self, run: Run) -> None:
        """Give a run of a schedule its slot."""
        assert self._recurrence is not None
        definition = self._recurrence.definitions.get(run.type)
        if definition is None:
            self._recurrence.release([run])
            return
        attempt = Attempt(run, definition)
        around = self._around.in_threads if definition.kind == "thread" else self._around
        attempt.context = context = ScheduleContext(run, around)
        context.definition = definition
        self.running.add(attempt)

    def stop_overdue(self) -> None:
        """Ask every attempt that is past its timeout to stop, and again until it does."""
        now = self._loop.time()
        for attempt in list(self.running.values()):
            if attempt.deadline <= now:
                attempt.ask_to_stop(Stop.TIMEOUT)
                attempt.deadline = now + 1

    def tell_beginnings(self) -> None:
        """Tell of the attempts that have begun and go on."""
        for attempt in self.running.values():
            if attempt.began:
                self._tell_beginning(attempt)

    def _tell_beginning(self, attempt: Attempt) -> None:
        if not attempt.is_told:
            attempt.is_told = True
            self._events.began(attempt.job, attempt.began)

    def _tell_completion(
        self, attempt: Attempt, outcome: Returned, ack: Completion, seconds: float
    ) -> None:
        began = None if attempt.is_told else attempt.began
        self._events.completed(attempt.job, outcome, ack, seconds, began)

    def let_go(self, job_id: UUID, lease: int) -> None:
        """Stop an attempt whose job is no longer its own."""
        self.running.let_go(job_id, lease)

    def expect_slow(self) -> None:
        """What was fetched ahead waits in vain: the quick attempts before say nothing any more."""
        self.mean_seconds = max(self.mean_seconds, SLOW)

    def release_all(self, why: Stop = Stop.RELEASED) -> None:
        """Stop everything: the worker ends now, or is cut off."""
        for attempt in list(self.running.values()):
            attempt.ask_to_stop(why)

    def interrupt_all(self, why: Stop) -> None:
        """Stop threads and children, from any thread: the loop may be blocked."""
        for attempt in list(self.running.values()):
            if attempt.is_interruptible:
                attempt.ask_to_stop(why)

    async def close(self) -> None:
        self.release_all()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._children.close()

    async def _attempt(self, attempt: Attempt) -> None:
        attempt.begin(self._loop.time())
        close_stale_connections_of_async_code()
        marked = CURRENT_JOB.set(attempt.job)
        try:
            # It may have been stopped before it had its turn.
            outcome = (
                await self._outcome(attempt)
                if attempt.stop is None
                else self._failed(attempt, None)
            )
        except BaseException as error:
            # A handler may raise anything, SystemExit and CancelledError included; none of it is
            # the worker's.
            try:
                outcome = self._failed(attempt, error)
            except Exception as fault:  # of the error itself, a Snooze that knows no delay for one
                outcome = Raised(self._app.classifier.failure(fault))
        leave_if_copied()
        CURRENT_JOB.reset(marked)
        close_stale_connections_of_async_code()
        if isinstance(outcome, Raised) and outcome.failure.is_loss_if_read_only:
            outcome = await self._blamed(outcome.failure)
        # One that was released must not wait for the database: the worker is about to end.
        if attempt.context.completed and attempt.stop in (None, Stop.TIMEOUT):
            assert isinstance(outcome, Settled)
            await self._add_output(attempt.job, outcome.output)
        self._end(attempt, outcome)

    async def _blamed(self, failure: Failure) -> Raised:
        """Decide whether a refused write is due to a read-only server or to the handler."""
        try:
            is_loss = await self._around.is_read_only()
        except BaseException:  # asked to stop meanwhile
            is_loss = True
        return Raised(failure._replace(is_loss=is_loss))

    async def _outcome(self, attempt: Attempt) -> Outcome | Settled:
        job, definition, context = attempt.job, attempt.definition, attempt.context
        if job.expired:
            return Expired()
        if definition.kind == "process" or job.is_suspect:
            return await self._in_child(attempt)
        if definition.kind == "async" and not self._middlewares:
            output = await definition.handler(*self._args(attempt))
        else:
            output = await self._call(attempt)
        if attempt.stop is not None:
            return self._failed(attempt, None)
        if context.completed:
            return Settled(definition.write_output(output, limit=self._around.output_limit))
        if output is None:
            return Returned(None)
        return Returned(definition.write_output(output, limit=self._around.output_limit))

    async def _in_child(self, attempt: Attempt) -> Outcome | Settled:
        outcome = await self._children.run(attempt)
        if isinstance(outcome, Crashed) and (attempt.stop or attempt.context.completed):
            return self._failed(attempt, None)  # it was killed by us, or after it had completed
        return outcome

    async def _call(self, attempt: Attempt) -> Any:
        invoke = partial(attempt.definition.handler, *self._args(attempt))
        if attempt.definition.kind == "thread":
            invoke = partial(run_in_thread, self._threads, attempt, invoke)
        for wrap in self._middlewares:
            invoke = partial(wrap, attempt.context, invoke)
        return await invoke()

    def _args(self, attempt: Attempt) -> tuple[Any, ...]:
        if attempt.definition.takes_input:
            return attempt.context, attempt.definition.decode(attempt.job.input)
        return (attempt.context,)

    async def _add_output(self, job: Job, output: str | None) -> None:
        """Write what the handler returned after it had committed the completion itself.

        A handler that failed after that returned nothing: followers do not wait for its output.
        """
        if isinstance(job, Run):
            return
        try:
            await insist(self._around, self._events, lambda: add_output(job.id, job.lease, output))
        except BaseException:  # asked to stop meanwhile, or the output cannot be stored
            return

    def _failed(self, attempt: Attempt, error: BaseException | None) -> Outcome | Settled:
        if attempt.context.completed:
            return Settled()
        match attempt.stop:
            case Stop.TIMEOUT:
                error = TimedOut(f"it ran longer than its timeout of {self._timeout(attempt)}")
            case Stop.CANCELLED:
                return Settled()
            case Stop.RELEASED | Stop.CUT_OFF:
                return Released(has_begun=True)
        if isinstance(error, Snooze):
            return Snoozed(parse_duration(error.delay, what="Snooze.delay"))
        assert error is not None
        return Raised(self._app.classifier.failure(error))

    def _timeout(self, attempt: Attempt) -> Any:
        return attempt.job.timeout or attempt.definition.timeout

    def _end(self, attempt: Attempt, outcome: Outcome | Settled) -> None:
        job = attempt.job
        note = self._notes.take(attempt.context) if attempt.context.has_noted else None
        seconds = self._loop.time() - attempt.began
        self.mean_seconds += (seconds - self.mean_seconds) * 0.05
        if not isinstance(outcome, Settled):
            ack = self._settle(job, outcome, note, seconds)
            if isinstance(outcome, Returned) and isinstance(ack, Completion):
                self._tell_completion(attempt, outcome, ack, seconds)
            else:
                self._tell_beginning(attempt)
                self._tell_end(AttemptEnded(job, outcome, ack, seconds))
        elif attempt.stop is Stop.CANCELLED and not attempt.context.completed:
            self._tell_beginning(attempt)
            self._stopped.add(job, seconds)
        else:
            self._acker.written_elsewhere(job)
            done = Completion(job.id, job.lease, None)
            self._tell_completion(attempt, Returned(None), done, seconds)
        self.running.remove(attempt)
        if not attempt.takes_slot:
            self.requests_running -= 1
            self.request_ended()
        self.slot_freed()

    def _tell_end(self, ended: AttemptEnded) -> None:
        if isinstance(ended.ack, Settlement) and ended.ack.status.is_final:
            # Nothing is reported as dead-lettered before it is.
            self._acker.tell_when_written(ended)
        else:
            self._events.emit(ended)

    def _settle(self, job: Job, outcome: Outcome, note: Note | None, seconds: float) -> Ack:
        if isinstance(job, Run):
            assert self._recurrence is not None
            return self._recurrence.settle(job, outcome, note, seconds)
        ack = settle(job, outcome, self._policies[job.type], random.random())
        self._acker.ack(ack, note)
        return ack
