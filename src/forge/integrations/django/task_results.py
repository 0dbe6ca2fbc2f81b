"""A job as the result of a task. Nothing that a row names is imported."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from forge.core.lifecycle import Status
from forge.integrations.django.models import Attempt, Job
from forge.integrations.django.task_library import TaskLibrary, load_library

# The key in a job's `meta` of what only its task has.
META = "task"
STATUSES = {
    Status.PENDING: "READY",
    Status.RETRY: "READY",
    Status.CLAIMED: "READY",
    Status.RUNNING: "RUNNING",
    Status.COMPLETED: "SUCCESSFUL",
    Status.FAILED: "FAILED",
    Status.DEAD_LETTER: "FAILED",
    Status.CANCELLED: "FAILED",
}


def meta_of(task: Any) -> dict[str, Any]:
    """Return what a job does not have and its task's result shows."""
    run_after = task.run_after and task.run_after.isoformat()
    return {META: {"backend": task.backend, "priority": task.priority, "run_after": run_after}}


def result_of(job: Job, task: Any, library: TaskLibrary) -> Any:
    """Return the TaskResult of a job; `task` is the one that its type belongs to."""
    attempts = list(Attempt.objects.filter(job_id=job.id).order_by("lease"))
    input = job.input if isinstance(job.input, dict) else {}
    task = _as_enqueued(task, job, library)
    result = library.task_result(
        task=task,
        id=str(job.id),
        status=library.statuses[STATUSES[Status(job.status)]],
        enqueued_at=job.created_at,
        started_at=min((each.started_at for each in attempts if each.started_at), default=None)
        or job.started_at,
        finished_at=job.completed_at or job.failed_at or job.cancelled_at,
        last_attempted_at=job.started_at,
        args=input.get("args", []),
        kwargs=input.get("kwargs", {}),
        backend=task.backend,
        errors=[error_of(each, library) for each in attempts if each.exception],
        worker_ids=_worker_ids(job, attempts),
    )
    if job.status == Status.COMPLETED:
        object.__setattr__(result, "_return_value", job.output)
    return result


def error_of(attempt: Attempt, library: TaskLibrary) -> Any:
    """Return the error of an attempt."""
    name = attempt.exception or ""
    path = name if "." in name else f"builtins.{name}"
    trace = attempt.trace or f"{name}: {attempt.error}"
    return stored_error(library.package, path, trace)


def stored_error(package: str, path: str, trace: str) -> Any:
    """Return a TaskError that finds its class among the modules that are loaded."""
    return _error_type(package)(exception_class_path=path, traceback=trace)


@cache
def _error_type(package: str) -> type:
    library = load_library(package)

    class StoredTaskError(library.task_error):  # type: ignore[name-defined]
        """An error that another process raised: its path is data, and is never imported."""

        __slots__ = ()

        @property
        def exception_class(self) -> type[BaseException]:
            module, _, name = self.exception_class_path.rpartition(".")
            found = getattr(sys.modules.get(module), name, None)
            if not (isinstance(found, type) and issubclass(found, BaseException)):
                raise ValueError(
                    f"{self.exception_class_path!r} does not reference a valid exception."
                )
            return found

        def __reduce__(self) -> Any:
            return stored_error, (package, self.exception_class_path, self.traceback)

    return StoredTaskError


def _as_enqueued(task: Any, job: Job, library: TaskLibrary) -> Any:
    """Return the task with what `using()` changed for this job."""
    known = (job.meta or {}).get(META) if isinstance(job.meta, dict) else None
    if not isinstance(known, dict):
        return task
    run_after = known.get("run_after")
    try:
        return replace(
            task,
            backend=known.get("backend", task.backend),
            priority=known.get("priority", task.priority),
            queue_name=job.queue,
            run_after=run_after and datetime.fromisoformat(run_after),
        )
    except (library.invalid_task, ValueError, TypeError):
        return task  # the settings do not allow it any more


def _worker_ids(job: Job, attempts: Sequence[Attempt]) -> list[str]:
    ids = [each.worker_id for each in attempts]
    if job.status in (Status.RUNNING, Status.COMPLETED):
        ids.append(job.worker_id)
    return [str(each) for each in ids]
