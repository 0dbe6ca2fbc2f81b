"""Django 6.1's own tests of django.tasks, with Forge's backend.

A test that is not named here runs as Django wrote it. One that is defined here is ported: it says
what it changes. One that is None does not apply, for the reason in `contract.py`.
"""

import dataclasses
from unittest import mock

import psycopg
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.tasks import TaskResultStatus, default_task_backend, task_backends
from django.tasks.backends.immediate import ImmediateBackend
from django.tasks.exceptions import InvalidTask
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone
from orders.tests.kit import finished, job_rows, working
from tasks import tasks as test_tasks
from tasks import test_custom_backend, test_dummy_backend, test_immediate_backend
from tasks import test_tasks as test_general

from forge.integrations.django import ForgeBackend, app

FORGE = "forge.integrations.django.ForgeBackend"
RUNNING = "contract.backends.RunningBackend"


@override_settings(
    TASKS={
        "default": {"BACKEND": FORGE, "QUEUES": ["default", "queue_1"]},
        "immediate": {
            "BACKEND": "django.tasks.backends.immediate.ImmediateBackend",
            "QUEUES": [],
        },
        "missing": {"BACKEND": "does.not.exist"},
    },
    USE_TZ=True,
)
class Tasks(test_general.TaskTestCase, TestCase):
    databases = {"default"}

    def setUp(self):
        """Nothing to clear: each test rolls back."""

    def test_using_correct_backend(self):
        """Names Forge's backend."""
        self.assertEqual(default_task_backend, task_backends["default"])
        self.assertIsInstance(task_backends["default"], ForgeBackend)

    def test_enqueue_task(self):
        """Compares with the stored result instead of the dummy's list."""
        result = test_tasks.noop_task.enqueue()

        self.assertEqual(result.status, TaskResultStatus.READY)
        self.assertEqual(result.task, test_tasks.noop_task)
        self.assertEqual((result.args, result.kwargs), ([], {}))
        self.assertEqual(default_task_backend.get_result(result.id), result)
        self.assertEqual(len(job_rows()), 1)

    async def test_enqueue_task_async(self):
        """Compares with the stored result instead of the dummy's list."""
        result = await test_tasks.noop_task.aenqueue()

        self.assertEqual(result.status, TaskResultStatus.READY)
        self.assertEqual(result.task, test_tasks.noop_task)
        self.assertEqual((result.args, result.kwargs), ([], {}))
        self.assertEqual(await default_task_backend.aget_result(result.id), result)

    async def test_refresh_result(self):
        """Refreshes in a thread: like every query of Django, it is not allowed on the loop."""
        result = await test_tasks.noop_task.aenqueue()
        original_result = dataclasses.asdict(result)

        await sync_to_async(result.refresh)()
        self.assertEqual(dataclasses.asdict(result), original_result)

        await result.arefresh()
        self.assertEqual(dataclasses.asdict(result), original_result)

    def test_get_backend(self):
        """Names Forge's backend."""
        self.assertIsInstance(test_tasks.noop_task.get_backend(), ForgeBackend)

        immediate_task = test_tasks.noop_task.using(backend="immediate")
        self.assertIsInstance(immediate_task.get_backend(), ImmediateBackend)


@override_settings(TASKS={"default": {"BACKEND": FORGE, "QUEUES": []}})
class Enqueueing(test_dummy_backend.DummyBackendTestCase, TestCase):
    databases = {"default"}

    test_clear = None

    def setUp(self):
        """Nothing to clear: each test rolls back."""

    def test_using_correct_backend(self):
        """Names Forge's backend."""
        self.assertEqual(default_task_backend, task_backends["default"])
        self.assertIsInstance(task_backends["default"], ForgeBackend)
        self.assertEqual(default_task_backend.alias, "default")
        self.assertEqual(default_task_backend.options, {})

    def _see_a_new_result(self, result, task, args, kwargs):
        self.assertEqual(result.status, TaskResultStatus.READY)
        self.assertIs(result.is_finished, False)
        self.assertIsNone(result.started_at)
        self.assertIsNone(result.last_attempted_at)
        self.assertIsNone(result.finished_at)
        with self.assertRaisesMessage(ValueError, "Task has not finished yet"):
            _ = result.return_value
        self.assertEqual(result.task, task)
        self.assertEqual((result.args, result.kwargs), (args, kwargs))
        self.assertEqual(result.attempts, 0)

    def test_enqueue_task(self):
        """Compares with the stored result instead of the dummy's list."""
        for task in (test_tasks.noop_task, test_tasks.noop_task_async):
            with self.subTest(task):
                result = task.enqueue(1, two=3)

                self._see_a_new_result(result, task, [1], {"two": 3})
                self.assertEqual(default_task_backend.get_result(result.id), result)

    async def test_enqueue_task_async(self):
        """Compares with the stored result instead of the dummy's list."""
        for task in (test_tasks.noop_task, test_tasks.noop_task_async):
            with self.subTest(task):
                result = await task.aenqueue()

                self._see_a_new_result(result, task, [], {})
                self.assertEqual(await default_task_backend.aget_result(result.id), result)

    def test_refresh_result(self):
        """Changes the row, and not an object in memory."""
        result = default_task_backend.enqueue(test_tasks.calculate_meaning_of_life, (), {})
        _complete(result.id)

        self.assertEqual(result.status, TaskResultStatus.READY)
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)

    async def test_refresh_result_async(self):
        """Changes the row, and not an object in memory."""
        result = await default_task_backend.aenqueue(test_tasks.calculate_meaning_of_life, (), {})
        await sync_to_async(_complete)(result.id)

        self.assertEqual(result.status, TaskResultStatus.READY)
        await result.arefresh()
        self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)

    def test_validate_on_enqueue(self):
        """Names Forge's backend in the settings that change."""
        task = test_tasks.noop_task.using(queue_name="unknown_queue")

        with (
            override_settings(TASKS={"default": {"BACKEND": FORGE, "QUEUES": ["queue-1"]}}),
            self.assertRaisesMessage(InvalidTask, "Queue 'unknown_queue' is not valid for backend"),
        ):
            task.enqueue()

    async def test_validate_on_aenqueue(self):
        """Names Forge's backend in the settings that change."""
        task = test_tasks.noop_task.using(queue_name="unknown_queue")

        with (
            override_settings(TASKS={"default": {"BACKEND": FORGE, "QUEUES": ["queue-1"]}}),
            self.assertRaisesMessage(InvalidTask, "Queue 'unknown_queue' is not valid for backend"),
        ):
            await task.aenqueue()


@override_settings(TASKS={"default": {"BACKEND": FORGE}})
class Committing(test_dummy_backend.DummyBackendTransactionTestCase):
    available_apps = None

    def test_doesnt_wait_until_transaction_commit_by_default(self):
        """The row is in the transaction, and seen by others after its commit."""
        with transaction.atomic():
            result = test_tasks.noop_task.enqueue()

            self.assertIsNotNone(result.enqueued_at)
            self.assertEqual(len(job_rows()), 1)
            self.assertEqual(_count_elsewhere(), 0)

        self.assertEqual(_count_elsewhere(), 1)


@override_settings(TASKS={"default": {"BACKEND": RUNNING, "QUEUES": []}})
class Running(test_immediate_backend.ImmediateBackendTestCase, TransactionTestCase):
    """Each task runs in a real worker before `enqueue` returns."""

    databases = {"default"}

    test_throws_keyboard_interrupt = None

    def test_using_correct_backend(self):
        """Names Forge's backend."""
        self.assertIsInstance(task_backends["default"], ForgeBackend)
        self.assertEqual(default_task_backend.alias, "default")

    async def test_cannot_get_result(self):
        """Can: the result comes from the row."""
        result = await default_task_backend.aenqueue(test_tasks.calculate_meaning_of_life, [], {})

        self.assertEqual(await default_task_backend.aget_result(result.id), result)

    async def test_cannot_refresh_result(self):
        """Can: the result comes from the row."""
        result = await default_task_backend.aenqueue(test_tasks.calculate_meaning_of_life, [], {})

        await result.arefresh()

        self.assertEqual(result.return_value, 42)

    def test_cannot_pass_run_after(self):
        """Can: a task that is due later waits."""
        later = timezone.now() + timezone.timedelta(hours=1)
        task = test_tasks.calculate_meaning_of_life.using(run_after=later)

        result = ForgeBackend.enqueue(default_task_backend, task, (), {})
        with working():
            finished(ForgeBackend.enqueue(default_task_backend, test_tasks.noop_task, (), {}))

        result.refresh()
        self.assertEqual((result.status, result.task), (TaskResultStatus.READY, task))

    def test_validate_on_enqueue(self):
        """Names Forge's backend in the settings that change."""
        Enqueueing.test_validate_on_enqueue(self)

    async def test_validate_on_aenqueue(self):
        """Names Forge's backend in the settings that change."""
        await Enqueueing.test_validate_on_aenqueue(self)


class RunningInATransaction(test_immediate_backend.ImmediateBackendTransactionTestCase):
    available_apps = None
    test_doesnt_wait_until_transaction_commit_by_default = None


@override_settings(TASKS={"default": {"BACKEND": FORGE, "OPTIONS": {"timeout": "5m"}}})
class Customized(test_custom_backend.CustomBackendTestCase, TestCase):
    databases = {"default"}

    test_backend_does_not_support_priority = None
    test_no_enqueue = None

    def test_using_correct_backend(self):
        """Names Forge's backend."""
        self.assertEqual(default_task_backend, task_backends["default"])
        self.assertIsInstance(task_backends["default"], ForgeBackend)
        self.assertEqual(default_task_backend.options, {"timeout": "5m"})

    def test_enqueue_async_task_on_non_async_backend(self):
        """Restricts a subclass of Forge's backend."""
        with (
            mock.patch.multiple(ForgeBackend, supports_async_task=False),
            self.assertRaisesMessage(InvalidTask, "Backend does not support async Tasks."),
        ):
            default_task_backend.validate_task(test_tasks.noop_task_async)

    def test_options(self):
        """The options are attributes of the job types."""
        with mock.patch.dict(app.definitions, clear=True):
            test_tasks.noop_task.using()
            definition = app.definitions[test_tasks.noop_task.module_path]

        self.assertEqual(definition.job_type.timeout.total_seconds(), 300)


@override_settings(
    TASKS={
        "default": {
            "BACKEND": "contract.backends.CustomTaskBackend",
            "QUEUES": ["default", "high"],
        }
    }
)
class CustomTasks(test_custom_backend.CustomTaskTestCase, TestCase):
    """Every test as Django wrote it."""

    databases = {"default"}


def _complete(job_id):
    with connection.cursor() as cursor:
        for change in (
            "status = 'claimed', lease = lease + 1, worker_id = gen_random_uuid()",
            "status = 'running', started_at = now()",
            "status = 'completed', output = '42', completed_at = now()",
        ):
            cursor.execute(f"update forge_jobs set {change} where id = %s", [job_id])


def _count_elsewhere():
    with psycopg.connect(app.database_url) as other:
        return other.execute("select count(*) from forge_jobs").fetchone()[0]
