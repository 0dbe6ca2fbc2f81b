"""Each task is a job type of its own, named after its function: shop.tasks.send_receipt."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from forge.core.errors import InvalidValue
from forge.core.job import Priority
from forge.definitions.job import JobDefinition
from forge.integrations.django.task_handler import TaskHandler
from forge.integrations.django.task_library import TaskLibrary

Function = TypeVar("Function", bound=Callable[..., Any])
# The attributes of a job that do not come from the task itself.
OPTIONS = (
    "allow_sensitive",
    "dead_letter",
    "idempotent",
    "isolation",
    "max_attempts",
    "retry",
    "timeout",
    "worker_capability",
)
_ATTRIBUTE = "forge_job_options"


def job_options(**options: Any) -> Callable[[Function], Function]:
    """Set attributes of a job, such as timeout, on a task: write it below `@task`."""
    check_options(options, "job_options(…)")

    def decorate(function: Function) -> Function:
        setattr(function, _ATTRIBUTE, options)
        return function

    return decorate


def check_options(options: Mapping[str, Any], what: str) -> None:
    """Refuse attributes that a task cannot have."""
    if unknown := options.keys() - set(OPTIONS):
        raise InvalidValue(f"{what} has no option {min(unknown)!r}; it takes {', '.join(OPTIONS)}")


class TaskDefinition(JobDefinition[Any, Any]):
    """The job type of a task."""

    def __init__(self, task: Any, library: TaskLibrary, defaults: Mapping[str, Any]) -> None:
        self.task = task
        options = {**defaults, **getattr(task.func, _ATTRIBUTE, {})}
        if options.keys().isdisjoint(("max_attempts", "retry")):
            # A function that was written for another backend may not expect a second run.
            options["max_attempts"] = 1
        handler = TaskHandler(task, library).function()
        super().__init__(handler, name=task.module_path, **options)


# The least priority of a task, from -100 to 100, that has this priority as a job.
LEVELS = (
    (61, Priority.CRITICAL),
    (21, Priority.HIGH),
    (-20, Priority.NORMAL),
    (-60, Priority.LOW),
    (-100, Priority.BACKGROUND),
)


def job_priority(priority: int) -> Priority:
    """Return the level of a task's priority."""
    return next(level for least, level in LEVELS if priority >= least)
