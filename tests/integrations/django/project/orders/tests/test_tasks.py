"""Tasks of django.tasks, or of its backport, as jobs."""

import json
import pickle
import sys
from datetime import timedelta
from unittest import mock

from django.core.checks import run_checks
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from forge.integrations.django import ForgeBackend, app, job_options
from forge.integrations.django.task_definitions import job_priority
from forge.testing import run_all, sync
from orders import tasks
from orders.models import Order
from orders.task_names import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    signals,
    task_backends,
)
from orders.tests.kit import finished, job_rows, working

LOGGER = signals.__name__.removesuffix(".signals")


class Enqueued(TestCase):
    def test_each_task_is_a_job_type_of_its_own(self) -> None:
        names = {name for name in app.definitions if name.startswith("orders.tasks.")}

        assert names == {
            f"orders.tasks.{name}"
            for name in (
                "add_order",
                "count_orders",
                "fail",
                "fail_twice",
                "once",
                "snooze_once",
            )
        }
        count = app.definitions["orders.tasks.count_orders"].job_type
        assert (count.description, count.max_attempts) == ("Count all orders.", 1)
        assert app.definitions["orders.tasks.fail_twice"].job_type.max_attempts == 3

    def test_what_using_changes_is_stored_and_returned(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        changed = tasks.count_orders.using(priority=30, queue_name="slow", run_after=later)

        result = changed.enqueue()

        assert job_rows("priority, queue, scheduled_at") == [(75, "slow", later)]
        assert result.task == changed
        assert tasks.count_orders.get_result(result.id) == result

    def test_priorities_from_minus_100_to_100_have_five_levels(self) -> None:
        levels = [int(job_priority(each)) for each in range(-100, 101)]

        assert levels == sorted(levels)
        assert {each: levels.count(each) for each in set(levels)} == {
            0: 40, 25: 40, 50: 41, 75: 40, 100: 40,
        }  # fmt: skip
        assert int(job_priority(0)) == 50

    def test_arguments_are_the_input_of_the_job(self) -> None:
        result = tasks.add_order.enqueue("Ada", notes=("fragile",))

        ((text,),) = job_rows("input::text")
        assert json.loads(text) == {"args": ["Ada"], "kwargs": {"notes": ["fragile"]}}
        assert (result.args, result.kwargs) == (["Ada"], {"notes": ["fragile"]})

    def test_a_key_of_the_arguments_enqueues_a_task_once(self) -> None:
        first, second = tasks.once.enqueue(order=7), tasks.once.enqueue(order=7)

        assert first.id == second.id
        assert len(job_rows()) == 1

    def test_the_result_of_another_job_or_task_is_not_returned(self) -> None:
        job = app.sync.dispatch("confirm", {"order": 1})
        result = tasks.fail.enqueue()

        for unknown in (str(job.id), "123", str(job.id)[:-1] + "x"):
            with self.assertRaises(TaskResultDoesNotExist):
                tasks.fail.get_result(unknown)
        with self.assertRaises(TaskResultMismatch):
            tasks.once.get_result(result.id)

    def test_no_path_in_a_row_is_imported(self) -> None:
        result = tasks.fail.enqueue()
        unloaded = "antigravity"
        assert unloaded not in sys.modules
        with connection.cursor() as cursor:
            cursor.execute(
                "insert into forge_jobs (id, job_type) values (gen_random_uuid(), %s) returning id",
                [f"{unloaded}.fly"],
            )
            ((foreign,),) = cursor.fetchall()
            cursor.execute(
                "insert into forge_attempts (job_id, lease, attempt, outcome, exception, error) "
                "values (%s, 1, 1, 'retry', %s, ''), (%s, 2, 2, 'retry', 'os.system', '')",
                [result.id, f"{unloaded}.Error", result.id],
            )

        with self.assertRaises(TaskResultDoesNotExist):
            task_backends["default"].get_result(str(foreign))
        for error in tasks.fail.get_result(result.id).errors:
            with self.assertRaisesMessage(ValueError, "does not reference a valid exception"):
                _ = error.exception_class
        assert unloaded not in sys.modules

    def test_wrong_options_are_refused(self) -> None:
        with self.assertRaisesMessage(ValueError, "job_options(…) has no option 'attempts'"):
            job_options(attempts=3)
        with mock.patch.object(task_backends["default"], "options", {"attempts": 3}):
            found = [one.msg for one in run_checks() if one.id == "forge.E006"]
            assert "has no option 'attempts'" in found[0]
        with (
            mock.patch.object(task_backends["default"], "options", {"timeout": "soon"}),
            mock.patch.dict(app.definitions, clear=True),
            self.assertRaisesMessage(InvalidTask, "orders.tasks.fail: timeout"),
        ):
            tasks.fail.using()

    def test_the_backend_declares_what_it_supports(self) -> None:
        backend = task_backends["default"]

        assert isinstance(backend, ForgeBackend)
        assert backend.supports_defer
        assert backend.supports_async_task
        assert backend.supports_get_result
        assert backend.supports_priority


class WithTheTestingKit(TestCase):
    """Everything runs in the transaction of the test."""

    def test_tasks_and_jobs_run_on_the_connection_of_the_test(self) -> None:
        order = Order.objects.create(customer="Ada")
        count = tasks.count_orders.enqueue()
        failed = tasks.fail_twice.enqueue()
        app.sync.dispatch("remind", {"order": order.pk})

        summary = sync.run_all(app, conn=connection)

        count.refresh()
        failed.refresh()
        order.refresh_from_db()
        assert summary.completed == 4
        assert (count.return_value, failed.return_value) == (1, 3)
        assert order.confirmed_at is not None
        assert len(failed.errors) == 2

    async def test_an_async_test_runs_tasks(self) -> None:
        result = await tasks.add_order.aenqueue("Bob")

        await run_all(app, conn=connection)

        await result.arefresh()
        made = await Order.objects.aget()
        assert result.return_value == {"id": made.pk, "notes": []}


class Run(TransactionTestCase):
    def test_a_task_is_enqueued_with_the_commit(self) -> None:
        class Declined(Exception):
            pass

        with working():
            with transaction.atomic():
                result = tasks.count_orders.enqueue()
                Order.objects.create(customer="Ada")
            with self.assertRaises(Declined), transaction.atomic():
                tasks.fail.enqueue()
                raise Declined
            done = finished(result)

        assert (done.status, done.return_value) == (TaskResultStatus.SUCCESSFUL, 1)
        self.assertEqual(job_rows("job_type"), [("orders.tasks.count_orders",)])
        assert done.enqueued_at <= done.started_at <= done.finished_at
        assert done.attempts == 1

    async def test_a_coroutine_returns_its_value(self) -> None:
        result = await tasks.add_order.aenqueue("Bob", notes=["a"])
        await _in_a_worker(result)
        await result.arefresh()

        made = await Order.objects.aget()
        assert result.return_value == {"id": made.pk, "notes": ["a"]}
        assert await tasks.add_order.aget_result(result.id) == result

    def test_a_failure_has_its_error_and_can_be_pickled(self) -> None:
        with working(), self.assertLogs(LOGGER, "ERROR"):
            done = finished(tasks.fail.enqueue())

        assert done.status == TaskResultStatus.FAILED
        (error,) = done.errors
        assert error.exception_class is LookupError
        assert error.traceback.endswith("LookupError: no such order\n")
        (again,) = pickle.loads(pickle.dumps(done.errors))
        assert again == error
        assert again.exception_class is LookupError

    def test_attempts_and_signals_of_a_task_that_is_retried(self) -> None:
        seen = []

        def note(kind: str, task_result: object) -> None:
            seen.append((kind, str(task_result.status), task_result.attempts))

        def started(task_result: object, **_: object) -> None:
            note("started", task_result)

        def ended(task_result: object, **_: object) -> None:
            note("finished", task_result)

        signals.task_started.connect(started)
        signals.task_finished.connect(ended)
        try:
            with working():
                done = finished(tasks.fail_twice.enqueue())
        finally:
            signals.task_started.disconnect(started)
            signals.task_finished.disconnect(ended)

        assert done.return_value == done.attempts == 3
        assert [error.exception_class for error in done.errors] == [LookupError] * 2
        assert seen == [
            ("started", "RUNNING", 1),
            ("started", "RUNNING", 2),
            ("started", "RUNNING", 3),
            ("finished", "SUCCESSFUL", 3),
        ]

    def test_a_task_can_snooze(self) -> None:
        with working():
            done = finished(tasks.snooze_once.enqueue())

        assert done.return_value == done.id
        assert done.errors == []


async def _in_a_worker(result: object) -> None:
    from asgiref.sync import sync_to_async

    @sync_to_async
    def run() -> None:
        with working():
            finished(result)

    await run()
