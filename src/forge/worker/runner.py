"""Running attempts: a job goes in, an outcome comes out, whatever its handler does."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from forge.app import Forge
from forge.core.duration import parse_duration
from forge.core.errors import TimedOut
from forge.core.events import AttemptEnded
from forge.core.job import Job
from forge.core.outcome import (
    Completion,
    Crashed,
    Expired,
    Failure,
    Outcome,
    Raised,
    Released,
    Returned,
    Settled,
    Snoozed,
)
from forge.core.signals import Snooze
from forge.telemetry.logs.attempt_records import CURRENT_JOB
from forge.worker.attempts import Attempt, Slots, Stop
from forge.worker.handlers.children import HandlerPlaces
from forge.worker.handlers.django_connections import close_stale_connections_of_async_code
from forge.worker.handlers.forks import leave_if_copied
from forge.worker.handlers.runtime import LoopRuntime
from forge.worker.handlers.threads import run_in_thread
from forge.worker.held_work import FetchedJob, HeldWork
from forge.worker.loops import WorkSignals
from forge.worker.progress import ProgressWriter
from forge.worker.work_source import WorkSource


class Runner:
    """Runs attempts in the slots of a worker."""

    def __init__(
        self,
        app: Forge,
        held: HeldWork,
        progress: ProgressWriter,
        runtime: LoopRuntime,
        places: HandlerPlaces,
        signals: WorkSignals,
    ) -> None:
        self._app = app
        self.held = held
        self.running = held.running
        self._signals = signals
        self._progress = progress
        self._runtime = runtime
        self._threads, self._children = places
        self._events = app.events
        self._middlewares = app.middlewares[::-1]
        self._loop = asyncio.get_running_loop()
        # Bound once: they are passed for every attempt.
        self._run = Slots(self._attempt).take
        self._room_changed = signals.room_changed.set

    def take(self, jobs: Sequence[Job], source: WorkSource[Any], *, is_started: bool) -> None:
        """Run what was claimed as far as there are slots; the rest waits for one.

        `is_started` says whether the database has these jobs as running.
        """
        held, room = self.held, 0
        if is_started:
            # Jobs that came by message meanwhile may have taken slots.
            room = max(held.slots - held.slots_taken, 0)
        for job in jobs[:room]:
            self.start(job, source)
        now = self._loop.time()
        held.ahead.extend(FetchedJob(job, source, now, is_started) for job in jobs[room:])
        self._fill()  # slots may have become free while the claim was under way

    def start(self, job: Job, source: WorkSource[Any], *, takes_slot: bool = True) -> None:
        """Run what was claimed, in a slot or, for a short built-in job, beside the slots."""
        attempt = source.attempt(job, takes_slot=takes_slot)
        if attempt is None:
            # Hash collision between two lanes: release the job instead of crashing the worker.
            source.release(job)
            return
        self.held.beside_slots += not takes_slot
        self.running.add(attempt, self._run)

    def _fill(self) -> None:
        """Give free slots to the jobs that were fetched ahead."""
        held = self.held
        while held.ahead and held.slots_taken < held.slots and not held.is_closed:
            job, source, _, is_started = held.ahead.popleft()
            if not is_started:
                source.begin(job)
            self.start(job, source)

    def stop_overdue(self) -> None:
        """Ask every attempt that is past its timeout to stop, and again until it does."""
        now = self._loop.time()
        for attempt in list(self.running.values()):
            if attempt.deadline <= now:
                attempt.ask_to_stop(Stop.TIMEOUT)
                attempt.deadline = now + 1

    def report_starts(self) -> None:
        """Report the attempts that have begun and still run."""
        for attempt in self.running.values():
            if attempt.began:
                self._report_start(attempt)

    def _report_start(self, attempt: Attempt) -> None:
        if not attempt.is_reported:
            attempt.is_reported = True
            self._events.began(attempt.job, attempt.began)

    def release_all(self, why: Stop = Stop.RELEASED) -> None:
        """Stop everything: the worker ends now, or is cut off."""
        for attempt in list(self.running.values()):
            attempt.ask_to_stop(why)

    def interrupt_all(self, why: Stop) -> None:
        """Stop threads and children, from any thread: the loop may be blocked."""
        for attempt in list(self.running.values()):
            if attempt.is_interruptible:
                attempt.ask_to_stop(why)

    def wake_claims(self) -> None:
        """Have the loops that claim look again whether they may."""
        self._room_changed()
        self._signals.builtin_jobs.set()

    async def close(self) -> None:
        self.release_all()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._children.close()

    async def _attempt(self, attempt: Attempt) -> None:
        attempt.begin(self._loop.time())
        close_stale_connections_of_async_code()
        marked = CURRENT_JOB.set(attempt.job)
        try:
            # It may have been stopped before its turn.
            outcome = (
                await self._outcome(attempt)
                if attempt.stop is None
                else self._failed(attempt, None)
            )
        except BaseException as error:
            # A handler may raise anything, SystemExit and CancelledError included; none of it may
            # end the worker.
            try:
                outcome = self._failed(attempt, error)
            except Exception as fault:  # the error itself is broken, such as a Snooze without delay
                outcome = Raised(self._app.classifier.failure(fault))
        leave_if_copied()
        CURRENT_JOB.reset(marked)
        close_stale_connections_of_async_code()
        if isinstance(outcome, Raised) and outcome.failure.is_loss_if_read_only:
            outcome = await self._blamed(outcome.failure)
        # A released attempt must not wait for the database: the worker is about to end.
        if attempt.context.completed and attempt.stop in (None, Stop.TIMEOUT):
            assert isinstance(outcome, Settled)
            await self._add_output(attempt, outcome.output)
        self._end(attempt, outcome)

    async def _blamed(self, failure: Failure) -> Raised:
        """Decide whether a refused write is due to a read-only server or to the handler."""
        try:
            is_loss = await self._runtime.is_read_only()
        except BaseException:  # asked to stop meanwhile
            is_loss = True
        return Raised(failure._replace(is_loss=is_loss))

    async def _outcome(self, attempt: Attempt) -> Outcome | Settled:
        job, definition, context = attempt.job, attempt.definition, attempt.context
        if job.expired:
            return Expired()
        if definition.handler_kind == "process" or job.is_suspect:
            return await self._in_child(attempt)
        if definition.handler_kind == "async" and not self._middlewares:
            output = await definition.handler(*self._args(attempt))
        else:
            output = await self._call(attempt)
        if attempt.stop is not None:
            return self._failed(attempt, None)
        if context.completed:
            return Settled(definition.encode_output(output, limit=self._runtime.output_limit))
        if output is None:
            return Returned(None)
        return Returned(definition.encode_output(output, limit=self._runtime.output_limit))

    async def _in_child(self, attempt: Attempt) -> Outcome | Settled:
        outcome = await self._children.run(attempt)
        if isinstance(outcome, Crashed) and (attempt.stop or attempt.context.completed):
            return self._failed(attempt, None)  # it was killed by us, or after it had completed
        return outcome

    async def _call(self, attempt: Attempt) -> Any:
        invoke = partial(attempt.definition.handler, *self._args(attempt))
        if attempt.definition.handler_kind == "thread":
            invoke = partial(run_in_thread, self._threads, attempt, invoke)
        for wrap in self._middlewares:
            invoke = partial(wrap, attempt.context, invoke)
        return await invoke()

    def _args(self, attempt: Attempt) -> tuple[Any, ...]:
        if attempt.definition.takes_input:
            return attempt.context, attempt.definition.decode_input(attempt.job.input)
        return (attempt.context,)

    async def _add_output(self, attempt: Attempt, output: str | None) -> None:
        """Write what the handler returned after it had committed the completion itself.

        A handler that failed after that returned nothing: watchers do not wait for its output.
        """
        try:
            await attempt.source.add_output(attempt.job, output)
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
        return attempt.job.timeout or attempt.definition.job_type.timeout

    def _end(self, attempt: Attempt, outcome: Outcome | Settled) -> None:
        job, source = attempt.job, attempt.source
        update = self._progress.take(attempt.context) if attempt.context.has_noted else None
        if attempt.context.has_logged and (lines := self._progress.take_lines(attempt.context)):
            source.write_log(job, lines)
        seconds = self._loop.time() - attempt.began
        held = self.held
        held.mean_seconds += (seconds - held.mean_seconds) * 0.05
        began = None if attempt.is_reported else attempt.began
        if not isinstance(outcome, Settled):
            ack = source.settle(job, outcome, update, seconds, began)
            if isinstance(outcome, Returned) and isinstance(ack, Completion):
                self._events.completed(job, outcome, ack, seconds, began)
            else:
                self._report_start(attempt)
                source.report_end(AttemptEnded(job, outcome, ack, seconds))
        elif attempt.stop is Stop.CANCELLED and not attempt.context.completed:
            self._report_start(attempt)
            source.report_stopped(job, seconds)
        else:
            source.report_completed(job, seconds, began)
            done = Completion(job.id, job.lease, None)
            self._events.completed(job, Returned(None), done, seconds, began)
        self.running.remove(attempt, self._run)
        if not attempt.takes_slot:
            held.beside_slots -= 1
            self._signals.builtin_jobs.set()
        if held.ahead:
            self._fill()
        self._room_changed()
