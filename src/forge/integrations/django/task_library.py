"""Names of django.tasks (Django 6.0 and later) or of its backport, the package django-tasks."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured

NATIVE = "django.tasks"
BACKPORT = "django_tasks"


class TaskLibrary(NamedTuple):
    """What a backend needs of one of the two packages."""

    package: str
    base_backend: type
    task_result: Any
    task_error: Any
    task_context: Any
    # READY, RUNNING, FAILED, SUCCESSFUL.
    statuses: Any
    normalize_json: Callable[[Any], Any]
    # The exceptions of a wrong task and of an unknown result.
    invalid_task: type[Exception]
    does_not_exist: type[Exception]
    # task_enqueued, task_started, task_finished.
    signals: Any


@cache
def load_library(package: str) -> TaskLibrary:
    """Import one of the packages."""
    base = import_module(f"{package}.base")
    exceptions = import_module(f"{package}.exceptions")
    return TaskLibrary(
        package=package,
        base_backend=import_module(f"{package}.backends.base").BaseTaskBackend,
        task_result=base.TaskResult,
        task_error=base.TaskError,
        task_context=base.TaskContext,
        statuses=base.TaskResultStatus,
        normalize_json=base.normalize_json,
        invalid_task=getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError,
        does_not_exist=exceptions.TaskResultDoesNotExist,
        signals=import_module(f"{package}.signals"),
    )


def default_package() -> str:
    """Return the package of this project: Django's own where it has one."""
    for package in (NATIVE, BACKPORT):
        if find_spec(package) is not None:
            return package
    raise ImproperlyConfigured(
        "ForgeBackend needs django.tasks (Django 6.0 and later) or its backport; run "
        "`pip install django-tasks`"
    )
