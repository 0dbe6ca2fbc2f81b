"""`app.sync`: dispatching without an event loop."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from forge import Forge, ForgeError, InvalidPayload, InvalidValue, Status, UnknownJobType
from forge.sync.app import SyncForge
from tests.store.connections import SYNC
from tests.sync.conftest import count


def test_a_job_is_dispatched_and_read_back(sync: SyncForge) -> None:
    handle = sync.dispatch("double", {"n": 1}, priority="high", tags=["a"])

    found = handle.get()
    assert (found.id, found.input, found.status) == (handle.id, {"n": 1}, Status.PENDING)
    assert (found.priority, found.tags) == (75, ["a"])
    assert sync.get(handle.id) == sync.handle(handle.id).get() == found


def test_a_second_dispatch_of_a_key_is_deduplicated(sync: SyncForge) -> None:
    first = sync.dispatch("keyed", {"n": 1})
    second = sync.dispatch("keyed", {"n": 1})

    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert first.id == second.id


def test_it_rejects_what_the_async_app_rejects(sync: SyncForge) -> None:
    with pytest.raises(UnknownJobType, match="unknown job type 'nobody'"):
        sync.dispatch("nobody")
    with pytest.raises(UnknownJobType, match="did you mean 'double'"):
        sync.dispatch("duoble")
    with pytest.raises(InvalidValue, match="priority"):
        sync.dispatch("double", {"n": 1}, priority="urgent")
    with pytest.raises(InvalidPayload):
        sync.dispatch("double", {"n": "one"})
    with pytest.raises(ForgeError, match="there is no job"):
        sync.get(uuid4())


@pytest.mark.parametrize("name", ["double", "keyed"])
def test_dispatch_many_reads_a_generator_in_the_callers_thread(
    sync: SyncForge, database_url: str, name: str
) -> None:
    ran_in = set()

    def inputs() -> Iterator[dict[str, int]]:
        for n in range(5000):
            ran_in.add(threading.get_ident())
            if n == 3000:
                sync.dispatch("double", {"n": -1})  # the generator may dispatch too
            yield {"n": n}

    made = sync.dispatch_many(name, inputs(), delay="1h")

    assert made == 5000
    assert ran_in == {threading.get_ident()}
    assert count(database_url, "scheduled_at - created_at = '1h'") == 5000
    assert count(database_url) == 5001


@pytest.mark.parametrize("name", ["double", "keyed"])
def test_a_batch_with_a_bad_input_dispatches_nothing(
    sync: SyncForge, database_url: str, name: str
) -> None:
    def inputs() -> Iterator[Any]:
        yield from ({"n": n} for n in range(5000))
        yield {"n": {1, 2}}

    with pytest.raises(InvalidPayload, match="input 5000"):
        sync.dispatch_many(name, inputs())

    assert count(database_url) == 0
    assert sync.dispatch_many(name, [{"n": 1}]) == 1


def test_a_copy_that_the_table_rejects_raises(sync: SyncForge, database_url: str) -> None:
    execute(
        database_url,
        "alter table forge_jobs add constraint small check (input ->> 'n' <> '7777')",
    )

    with pytest.raises(ForgeError, match="small"):
        sync.dispatch_many("double", ({"n": n} for n in range(50_000)))

    assert count(database_url) == 0


@pytest.mark.parametrize("driver", SYNC)
async def test_a_borrowed_connection_needs_no_loop(
    app: Forge, database_url: str, driver: str
) -> None:
    threads = threading.active_count()
    async with SYNC[driver](database_url) as lent:
        one = app.sync.dispatch("keyed", {"n": 1}, conn=lent.conn)
        again = app.sync.dispatch("keyed", {"n": 1}, conn=lent.conn)
        many = app.sync.dispatch_many("double", [{"n": 2}, {"n": 3}], conn=lent.conn)
        cancel = app.sync.cancel(one.id, conn=lent.conn)
        before = count(database_url)
        started = threading.active_count() - threads
        await lent.commit()

    assert (before, started, many, again.id) == (0, 0, 2, one.id)
    assert count(database_url) == 4
    assert (await app.get(cancel.id)).job_type == "forge.cancel"


def test_an_open_app_wakes_the_workers_for_a_borrowed_connection(
    sync: SyncForge, database_url: str
) -> None:
    sync.dispatch("double", {"n": 1})
    with psycopg.connect(database_url, autocommit=True) as ear:
        ear.execute("listen forge_wake")
        with psycopg.connect(database_url) as conn:
            sync.dispatch("double", {"n": 1}, conn=conn)

        assert [note.channel for note in ear.notifies(timeout=10, stop_after=1)] == ["forge_wake"]


def execute(url: str, sql: str) -> None:
    with psycopg.connect(url) as conn:
        conn.execute(sql)
