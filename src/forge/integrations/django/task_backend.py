"""The backend for django.tasks, and for its backport: tasks as jobs.

Supported: results from any process, `run_after`, priorities, coroutines, and enqueueing in the
current transaction. Within one of the five levels, jobs run in the order of their times, whatever
their exact priorities.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.utils import timezone

from forge.core.errors import InvalidValue
from forge.core.new_job import DispatchOptions
from forge.integrations.django.models import Job
from forge.integrations.django.project_app import app
from forge.integrations.django.task_definitions import (
    TaskDefinition,
    check_options,
    job_priority,
)
from forge.integrations.django.task_library import (
    BACKPORT,
    TaskLibrary,
    default_package,
    load_library,
)
from forge.integrations.django.task_results import meta_of, result_of


class TaskBackend:
    """What both backends have in common, above the base class of their package."""

    library: ClassVar[TaskLibrary]

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    alias: str
    options: Mapping[str, Any]

    def validate_task(self, task: Any) -> None:
        """Check a task, and make it a job type: Django calls this for each task that is made."""
        super().validate_task(task)  # type: ignore[misc]
        known = app.definitions.get(task.module_path)
        if isinstance(known, TaskDefinition) and known.task.func is task.func:
            return
        try:
            definition = TaskDefinition(task, self.library, self.options)
        except InvalidValue as error:
            raise self.library.invalid_task(str(error)) from error
        # A module that was imported again replaces its tasks.
        app.definitions.pop(task.module_path, None)
        app.register(definition)

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Enqueue a task: it runs once the current transaction has committed."""
        self.validate_task(task)
        normalize = self.library.normalize_json
        input = {"args": normalize(list(args)), "kwargs": normalize(kwargs)}
        handle = app.sync.dispatch(task.module_path, input, **_options(task))
        result = self.get_result(str(handle.id))
        self.library.signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return the result with this id, or raise TaskResultDoesNotExist."""
        try:
            job_id = UUID(result_id)
        except (ValueError, AttributeError, TypeError):
            raise self.library.does_not_exist(result_id) from None
        job = Job.objects.filter(pk=job_id).first()
        definition = None if job is None else app.definitions.get(job.job_type)
        if job is None or not isinstance(definition, TaskDefinition):
            # Of no task that this process knows: the path in the row is not imported.
            raise self.library.does_not_exist(result_id)
        return result_of(job, definition.task, self.library)

    def check(self, **_: Any) -> Iterator[CheckMessage]:
        """Report mistakes in the settings of the backend."""
        if not apps.is_installed("forge.integrations.django"):
            yield Error(
                f"TASKS[{self.alias!r}] is Forge's backend, and Forge is not installed.",
                hint='Add "forge.integrations.django" to INSTALLED_APPS.',
                id="forge.E005",
            )
        try:
            check_options(self.options, f"TASKS[{self.alias!r}] OPTIONS")
        except InvalidValue as error:
            yield Error(str(error), id="forge.E006")


def backend_for(package: str) -> type[TaskBackend]:
    """Return the backend for django.tasks or for its backport."""
    library = load_library(package)
    is_backport = package == BACKPORT
    name = "BackportBackend" if is_backport else "ForgeBackend"
    return type(name, (TaskBackend, library.base_backend), {"library": library})


def _options(task: Any) -> DispatchOptions:
    options: DispatchOptions = {
        "priority": job_priority(task.priority),
        "queue": task.queue_name,
        "meta": meta_of(task),
    }
    if (run_after := task.run_after) is not None:
        options["scheduled_at"] = (
            timezone.make_aware(run_after) if timezone.is_naive(run_after) else run_after
        )
    return options


# Of django.tasks, and of the backport where Django has no tasks of its own.
ForgeBackend = backend_for(default_package())
