"""Runs the function of a task in a worker, and sends Django's signals around it."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from inspect import iscoroutinefunction
from traceback import format_exception
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from forge.core.errors import Cancelled
from forge.core.signals import NonRetryable, Snooze
from forge.integrations.django.models import Job
from forge.integrations.django.task_library import TaskLibrary
from forge.integrations.django.task_results import result_of, stored_error
from forge.jobs.context import JobContext


@dataclass
class TaskInput:
    """The arguments of a task."""

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


# The attempt does not end with these: it is run again, or its job was taken away.
NOT_AN_END = (Snooze, Cancelled, asyncio.CancelledError, GeneratorExit)


class TaskHandler:
    """The handler of a task's job type."""

    def __init__(self, task: Any, library: TaskLibrary) -> None:
        self._task = task
        self._library = library
        self._sender = type(task.get_backend())

    def function(self) -> Callable[..., Any]:
        """Return the handler: a coroutine function if the task is one."""

        async def run_async(ctx: JobContext, input: TaskInput) -> Any:
            return await self._run_async(ctx, input)

        def run_sync(ctx: JobContext, input: TaskInput) -> Any:
            return self._run_sync(ctx, input)

        run = run_async if iscoroutinefunction(self._task.func) else run_sync
        run.__doc__ = self._task.func.__doc__
        return run

    def _run_sync(self, ctx: JobContext, input: TaskInput) -> Any:
        result = self._begin(ctx, input)
        try:
            value = self._task.func(*self._arguments(result, input), **input.kwargs)
            value = self._library.normalize_json(value)
        except BaseException as error:
            self._fail(ctx, result, error)
            raise
        self._succeed(result, value)
        return value

    async def _run_async(self, ctx: JobContext, input: TaskInput) -> Any:
        result = await sync_to_async(self._begin)(ctx, input)
        try:
            value = await self._task.func(*self._arguments(result, input), **input.kwargs)
            value = self._library.normalize_json(value)
        except NOT_AN_END:
            raise
        except BaseException as error:
            await sync_to_async(self._fail)(ctx, result, error)
            raise
        await sync_to_async(self._succeed)(result, value)
        return value

    def _arguments(self, result: Any, input: TaskInput) -> list[Any]:
        if not self._task.takes_context:
            return input.args
        return [self._library.task_context(task_result=result), *input.args]

    def _begin(self, ctx: JobContext, input: TaskInput) -> Any:
        result = self._running_result(ctx, input)
        self._send("task_started", result)
        return result

    def _running_result(self, ctx: JobContext, input: TaskInput) -> Any:
        now = timezone.now()
        # Absent where the transaction of a test has not committed it.
        job = Job.objects.filter(pk=ctx.job_id).first() or Job(
            id=ctx.job_id,
            status="running",
            created_at=now,
            queue=ctx.job.queue,
            input=asdict(input),
        )
        # The start of this attempt may not be written yet.
        is_written = job.status == "running"
        job.status = "running"
        job.started_at = job.started_at if is_written and job.started_at else now
        return result_of(job, self._task, self._library)

    def _succeed(self, result: Any, value: Any) -> None:
        statuses = self._library.statuses
        _set(result, status=statuses.SUCCESSFUL, finished_at=timezone.now(), _return_value=value)
        self._send("task_finished", result)

    def _fail(self, ctx: JobContext, result: Any, error: BaseException) -> None:
        """Send the signal if no further attempt follows."""
        is_final = isinstance(error, NonRetryable) or ctx.is_last_attempt
        if isinstance(error, NOT_AN_END) or not is_final:
            return
        path = f"{type(error).__module__}.{type(error).__qualname__}"
        trace = "".join(format_exception(error))
        errors = [*result.errors, stored_error(self._library.package, path, trace)]
        failed = self._library.statuses.FAILED
        _set(result, status=failed, finished_at=timezone.now(), errors=errors)
        self._send("task_finished", result)

    def _send(self, signal: str, result: Any) -> None:
        # robust: the error of a receiver is logged, and does not fail the task.
        getattr(self._library.signals, signal).send_robust(self._sender, task_result=result)


def _set(result: Any, **values: Any) -> None:
    """Change a result, which is frozen for everyone else."""
    for name, value in values.items():
        object.__setattr__(result, name, value)
