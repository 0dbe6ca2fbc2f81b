"""Backends of Forge for the contract."""

from orders.tests.kit import finished, working
from tasks.test_custom_backend import CustomTask

from forge.integrations.django import ForgeBackend


class RunningBackend(ForgeBackend):
    """Runs each task in a worker before `enqueue` returns, as the immediate backend does."""

    def enqueue(self, task, args, kwargs):
        with working():
            return finished(super().enqueue(task, args, kwargs))


class CustomTaskBackend(ForgeBackend):
    """Makes tasks of another class."""

    task_class = CustomTask
