"""django.tasks, or its backport for Django below 6.0."""

try:
    from django.tasks import (
        TaskContext,
        TaskResultStatus,
        default_task_backend,
        signals,
        task,
        task_backends,
    )
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
except ImportError:
    from django_tasks import (
        TaskContext,
        TaskResultStatus,
        default_task_backend,
        signals,
        task,
        task_backends,
    )
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch

__all__ = [
    "InvalidTask",
    "TaskContext",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "default_task_backend",
    "signals",
    "task",
    "task_backends",
]
