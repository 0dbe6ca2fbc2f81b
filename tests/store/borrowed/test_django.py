"""`conn=` with Django's connection."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from forge import Forge, ForgeError, InvalidPayload
from forge.definitions.job import JobDefinition
from tests.django_setup import set_up_django


@pytest.fixture
def connection(database_url: str) -> Iterator[Any]:
    from django.db import connection, connections
    from django.db.utils import ConnectionHandler

    address = urlsplit(database_url)
    place = parse_qs(address.query)
    handler = ConnectionHandler(
        {
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": address.path[1:],
                "USER": address.username,
                "HOST": place["host"][0],
                "PORT": place["port"][0],
            }
        }
    )
    connections._connections = handler._connections
    connections.settings = handler.settings
    yield connection
    connection.close()
    del connections["default"]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.django_project")
    set_up_django()


@pytest.fixture
def app(database_url: str) -> Iterator[Forge]:
    app = Forge(database_url=database_url)
    yield app
    app.sync.close()


@pytest.fixture
def plain(app: Forge) -> JobDefinition[Any, Any]:
    @app.job(idempotent="input.n")
    async def plain(ctx: Any, input: dict) -> None: ...

    return plain


def test_a_job_lives_and_dies_with_the_atomic_block(
    connection: Any, app: Forge, plain: JobDefinition[Any, Any], database_url: str
) -> None:
    from django.db import transaction

    class Declined(Exception): ...

    def order(number: int, *, declined: bool) -> None:
        with transaction.atomic():
            app.sync.dispatch(plain, {"n": number}, conn=connection, delay="1h", tags=["a"])
            with connection.cursor() as cursor:
                cursor.execute("select 1")
            if declined:
                raise Declined

    order(1, declined=False)
    with pytest.raises(Declined):
        order(2, declined=True)

    assert inputs(database_url) == [{"n": 1}]


def test_a_failed_bulk_dispatch_rolls_back_only_itself(
    connection: Any, app: Forge, plain: JobDefinition[Any, Any], database_url: str
) -> None:
    from django.db import transaction

    with transaction.atomic():
        assert app.sync.dispatch_many(plain, [{"n": n} for n in range(3)], conn=connection) == 3
        with pytest.raises(InvalidPayload):
            app.sync.dispatch_many(plain, [{"n": 5}, {"n": b""}], conn=connection)

    assert len(inputs(database_url)) == 3


def test_outside_of_an_atomic_block_it_is_refused(
    connection: Any, app: Forge, plain: JobDefinition[Any, Any], database_url: str
) -> None:
    with pytest.raises(ForgeError, match=r"transaction\.atomic"):
        app.sync.dispatch(plain, {"n": 1}, conn=connection)

    assert inputs(database_url) == []


def test_a_broken_atomic_block_is_named_as_such(
    connection: Any, app: Forge, plain: JobDefinition[Any, Any]
) -> None:
    from django.db import transaction

    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(ForgeError, match="roll it back"):
            app.sync.dispatch(plain, {"n": 1}, conn=connection)


def inputs(url: str) -> list[Any]:
    with psycopg.connect(url) as conn:
        return [
            row[0] for row in conn.execute("select input from forge_jobs order by created_at, id")
        ]
