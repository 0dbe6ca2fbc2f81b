"""The testing kit under pytest-django, which has its own database and transactions."""

from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from forge.integrations.django import app
from forge.testing import run_all, sync
from orders.jobs import confirm, remind
from orders.models import Order
from orders.tests.kit import job_rows


@pytest.fixture
def order() -> Order:
    return Order.objects.create(customer="Ada")


@pytest.mark.django_db
def test_jobs_run_in_the_transaction_of_the_test(order: Order) -> None:
    app.sync.dispatch(remind, {"order": order.pk})

    summary = sync.run_all(app, conn=connection)

    order.refresh_from_db()
    assert summary.completed == 2
    assert order.confirmed_at is not None


@pytest.mark.django_db
def test_an_earlier_test_left_no_job() -> None:
    assert job_rows() == []


@pytest.fixture
def closed_after_the_test() -> Iterator[None]:
    yield
    app.sync.close()


@pytest.mark.django_db(transaction=True)
def test_committed_jobs_run_on_connections_of_their_own(
    order: Order, closed_after_the_test: None
) -> None:
    app.sync.dispatch(confirm, {"order": order.pk})

    sync.assert_dispatched(app, confirm, {"order": order.pk})
    summary = sync.run_all(app)

    order.refresh_from_db()
    assert summary.completed == 1
    assert order.confirmed_at is not None


@pytest.mark.django_db(transaction=True)
async def test_an_async_test_commits() -> None:
    order = await Order.objects.acreate(customer="Bob")
    await confirm.dispatch({"order": order.pk})

    summary = await run_all(app)
    await app.close()

    await order.arefresh_from_db()
    await sync_to_async(connections.close_all)()  # of the thread that runs Django's async queries
    assert summary.completed == 1
    assert order.confirmed_at is not None
