"""A dispatch joins the transaction of Django's connection."""

import asyncio

import psycopg
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

from forge.integrations.django import app
from orders.jobs import confirm, remind
from orders.models import Order
from orders.tests.kit import job_rows, working


class Declined(Exception):
    pass


class InATestCase(TestCase):
    def test_the_job_is_in_the_transaction_of_the_test(self) -> None:
        app.sync.dispatch(confirm, {"order": 1})

        assert len(job_rows()) == 1
        with psycopg.connect(app.database_url) as other:
            assert other.execute("select count(*) from forge_jobs").fetchone() == (0,)

    async def test_an_async_dispatch_is_in_the_transaction_of_the_test(self) -> None:
        handle = await confirm.dispatch({"order": 1})

        def read() -> list:
            return job_rows("id")

        assert await asyncio.to_thread(lambda: _count_elsewhere()) == 0
        from asgiref.sync import sync_to_async

        assert await sync_to_async(read)() == [(handle.id,)]

    def test_no_earlier_test_left_a_job(self) -> None:
        assert job_rows() == []


class InATransactionTestCase(TransactionTestCase):
    def test_the_job_lives_and_dies_with_the_atomic_block(self) -> None:
        def order(customer: str, *, is_declined: bool) -> None:
            with transaction.atomic():
                made = Order.objects.create(customer=customer)
                app.sync.dispatch(confirm, {"order": made.pk})
                if is_declined:
                    raise Declined

        order("Ada", is_declined=False)
        with self.assertRaises(Declined):
            order("Bob", is_declined=True)

        assert [input["order"] for _, input in _decoded()] == [Order.objects.get().pk]

    def test_a_savepoint_that_is_rolled_back_takes_its_job_along(self) -> None:
        with transaction.atomic():
            app.sync.dispatch(confirm, {"order": 1})
            with self.assertRaises(Declined), transaction.atomic():
                app.sync.dispatch(confirm, {"order": 2})
                raise Declined
            app.sync.dispatch_many(confirm, [{"order": 3}, {"order": 4}])

        assert [input["order"] for _, input in _decoded()] == [1, 3, 4]

    def test_one_notification_follows_each_commit_that_dispatched(self) -> None:
        with psycopg.connect(app.database_url, autocommit=True) as listener:
            listener.execute("listen forge_wake")
            app.sync.dispatch(confirm, {"order": 1})
            with transaction.atomic():
                app.sync.dispatch(confirm, {"order": 2})
                app.sync.dispatch(confirm, {"order": 3})
            with self.assertRaises(Declined), transaction.atomic():
                app.sync.dispatch(confirm, {"order": 4})
                raise Declined
            with transaction.atomic():
                Order.objects.create(customer="Ada")
            listener.execute("notify forge_wake, 'the last'")
            received = listener.notifies(timeout=10, stop_after=3)

            assert [one.payload == "the last" for one in received] == [False, False, True]

    def test_the_same_key_returns_the_first_job(self) -> None:
        first = app.sync.dispatch(remind, {"order": 1})
        second = app.sync.dispatch(remind, {"order": 1})

        assert (second.id, second.deduplicated) == (first.id, True)

    def test_a_worker_runs_what_was_committed_and_what_handlers_dispatch(self) -> None:
        with working():
            order = Order.objects.create(customer="Ada")
            handle = app.sync.dispatch(remind, {"order": order.pk})
            handle.result(timeout=30)
            (parent, job) = job_rows("id, parent_id")[-1]

            assert app.sync.handle(parent).result(timeout=30) == "confirmed for Ada"
            assert job == handle.id
        order.refresh_from_db()
        assert order.confirmed_at is not None

    def test_the_tables_are_empty_after_each_test(self) -> None:
        assert job_rows() == []
        with connection.cursor() as cursor:
            cursor.execute("select name from forge_job_types order by name")
            assert {("confirm",), ("remind",)} <= set(cursor.fetchall())


def _decoded() -> list:
    import json

    return [(type, json.loads(text)) for type, text in job_rows("job_type, input::text")]


def _count_elsewhere() -> int:
    with psycopg.connect(app.database_url) as other:
        return other.execute("select count(*) from forge_jobs").fetchone()[0]
