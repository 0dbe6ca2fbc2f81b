"""`app.sync`: the verbs for code that has no event loop."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
import pytest

from forge import (
    Forge,
    ForgeError,
    InvalidPayload,
    InvalidValue,
    JobContext,
    JobFailed,
    ResultTimeout,
    Status,
    UnknownJobType,
    Worker,
)
from forge.sync import SyncForge
from tests.store.connections import SYNC

T = TypeVar("T")


@pytest.fixture
def app(database_url: str) -> Iterator[Forge]:
    app = Forge(database_url=database_url)
    app.job(double)
    app.job(broken)
    app.job(name="keyed", idempotent="input.n")(double)
    yield app
    app.sync.close()


@pytest.fixture
def sync(app: Forge) -> SyncForge:
    return app.sync


async def double(ctx: JobContext, input: dict[str, int]) -> int:
    ctx.progress(50, "halfway")
    return input["n"] * 2


async def broken(ctx: JobContext, input: dict[str, int]) -> None:
    raise LookupError("no such thing")


def test_a_job_is_dispatched_and_read_back(sync: SyncForge) -> None:
    handle = sync.dispatch("double", {"n": 1}, priority="high", tags=["a"])

    found = handle.get()
    assert (found.id, found.input, found.status) == (handle.id, {"n": 1}, Status.PENDING)
    assert (found.priority, found.tags) == (75, ["a"])
    assert sync.get(handle.id) == sync.handle(handle.id).get() == found


def test_an_app_has_one_sync_side(app: Forge) -> None:
    assert app.sync is app.sync


def test_a_second_dispatch_of_a_key_says_so(sync: SyncForge) -> None:
    first = sync.dispatch("keyed", {"n": 1})
    second = sync.dispatch("keyed", {"n": 1})

    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert first.id == second.id


def test_what_the_app_refuses_is_refused(sync: SyncForge) -> None:
    with pytest.raises(UnknownJobType, match="nobody registered"):
        sync.dispatch("nobody")
    with pytest.raises(InvalidValue, match="priority"):
        sync.dispatch("double", {"n": 1}, priority="urgent")
    with pytest.raises(InvalidPayload):
        sync.dispatch("double", {"n": "one"})
    with pytest.raises(ForgeError, match="there is no job"):
        sync.get(uuid4())


@pytest.mark.parametrize("name", ["double", "keyed"])
def test_many_are_dispatched_from_a_generator_in_the_callers_thread(
    sync: SyncForge, database_url: str, name: str
) -> None:
    ran_in = set()

    def inputs() -> Iterator[dict[str, int]]:
        for n in range(5000):
            ran_in.add(threading.get_ident())
            if n == 3000:
                sync.dispatch("double", {"n": -1})  # what it is fed with may dispatch as well
            yield {"n": n}

    made = sync.dispatch_many(name, inputs(), delay="1h")

    assert made == 5000
    assert ran_in == {threading.get_ident()}
    assert count(database_url, "scheduled_at - created_at = '1h'") == 5000
    assert count(database_url) == 5001


@pytest.mark.parametrize("name", ["double", "keyed"])
def test_of_many_with_a_bad_one_none_is_dispatched(
    sync: SyncForge, database_url: str, name: str
) -> None:
    def inputs() -> Iterator[Any]:
        yield from ({"n": n} for n in range(5000))
        yield {"n": {1, 2}}

    with pytest.raises(InvalidPayload, match="input 5000"):
        sync.dispatch_many(name, inputs())

    assert count(database_url) == 0
    assert sync.dispatch_many(name, [{"n": 1}]) == 1


def test_when_the_table_refuses_the_copy_ends_in_an_error(
    sync: SyncForge, database_url: str
) -> None:
    execute(
        database_url,
        "alter table forge_jobs add constraint small check (input ->> 'n' <> '7777')",
    )

    with pytest.raises(ForgeError, match="small"):
        sync.dispatch_many("double", ({"n": n} for n in range(50_000)))

    assert count(database_url) == 0


@pytest.mark.parametrize("kind", SYNC)
async def test_a_borrowed_connection_needs_no_loop(
    app: Forge, database_url: str, kind: str
) -> None:
    threads = threading.active_count()
    async with SYNC[kind](database_url) as lent:
        one = app.sync.dispatch("keyed", {"n": 1}, conn=lent.conn)
        again = app.sync.dispatch("keyed", {"n": 1}, conn=lent.conn)
        many = app.sync.dispatch_many("double", [{"n": 2}, {"n": 3}], conn=lent.conn)
        cancel = app.sync.cancel(one.id, conn=lent.conn)
        before = count(database_url)
        started = threading.active_count() - threads
        await lent.commit()

    assert (before, started, many, again.id) == (0, 0, 2, one.id)
    assert count(database_url) == 4
    assert cancel.get().job_type == "forge.cancel"


def test_an_open_app_wakes_the_workers_for_a_borrowed_connection(
    sync: SyncForge, database_url: str
) -> None:
    sync.dispatch("double", {"n": 1})
    with psycopg.connect(database_url, autocommit=True) as ear:
        ear.execute("listen forge_wake")
        with psycopg.connect(database_url) as conn:
            sync.dispatch("double", {"n": 1}, conn=conn)

        assert [note.channel for note in ear.notifies(timeout=10, stop_after=1)] == ["forge_wake"]


async def test_results_and_updates_come_without_a_loop(app: Forge, sync: SyncForge) -> None:
    async with working(app):
        handle = await in_thread(sync.dispatch, "double", {"n": 21})
        result = await in_thread(handle.result, 30)
        updates = await in_thread(lambda: list(handle.updates()))

    assert result == 42
    assert [update.status for update in updates] == [Status.COMPLETED]


async def test_updates_end_with_the_job(app: Forge, sync: SyncForge) -> None:
    handle = await in_thread(sync.dispatch, "double", {"n": 21})
    updates = handle.updates()
    first = await in_thread(next, updates)

    async with working(app):
        rest = await in_thread(lambda: list(updates))

    assert first.status is Status.PENDING
    assert rest[-1].status is Status.COMPLETED


def test_updates_may_be_left_early(sync: SyncForge) -> None:
    handle = sync.dispatch("double", {"n": 1})

    updates = handle.updates()
    next(updates)
    updates.close()

    assert handle.get().status is Status.PENDING


async def test_a_failed_job_raises(app: Forge, sync: SyncForge) -> None:
    app.job(name="fails", max_attempts=1)(broken)
    async with working(app):
        handle = await in_thread(sync.dispatch, "fails", {"n": 1})

        with pytest.raises(JobFailed, match="no such thing"):
            await in_thread(handle.result, 30)


def test_a_result_is_awaited_no_longer_than_asked(sync: SyncForge) -> None:
    handle = sync.dispatch("double", {"n": 1})

    with pytest.raises(ResultTimeout, match="goes on"):
        handle.result(timeout=0.01)


async def test_jobs_are_moved_by_request(app: Forge, sync: SyncForge) -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    ids = [
        (await in_thread(lambda: sync.dispatch("double", {"n": 1}, delay="1h"))).id
        for _ in range(4)
    ]

    async with working(app):
        requests = [
            await in_thread(sync.cancel, ids[0]),
            await in_thread(sync.delete, ids[1]),
            await in_thread(sync.run_now, ids[2]),
            await in_thread(sync.reschedule, ids[3], at),
        ]
        for request in requests:
            await in_thread(request.result, 30)
        assert await in_thread(sync.handle(ids[2]).result, 30) == 2

    found = [sync.get(job_id) for job_id in ids]
    assert [job.status for job in found] == ["cancelled", "cancelled", "completed", "pending"]
    assert found[3].scheduled_at == at


async def test_it_works_under_a_running_loop_beside_the_async_app(app: Forge) -> None:
    before = await app.dispatch("double", {"n": 1})
    between = app.sync.dispatch("double", {"n": 2})
    after = await app.dispatch("double", {"n": 3})

    assert [job.input["n"] for job in map(app.sync.get, (before.id, between.id, after.id))] == [
        1,
        2,
        3,
    ]
    await app.close()


def test_threads_share_it(sync: SyncForge, database_url: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        handles = list(threads.map(lambda n: sync.dispatch("double", {"n": n}), range(200)))

    assert len({handle.id for handle in handles}) == 200
    assert count(database_url) == 200


def test_after_close_it_opens_anew(sync: SyncForge, database_url: str) -> None:
    sync.dispatch("double", {"n": 1})
    sync.close()
    sync.close()
    sync.dispatch("double", {"n": 1})

    assert count(database_url) == 2


def test_closing_the_app_closes_it_too(app: Forge, database_url: str) -> None:
    app.sync.dispatch("double", {"n": 1})

    asyncio.run(app.close())

    assert "forge-sync" not in {thread.name for thread in threading.enumerate()}


def test_a_forked_process_opens_its_own(database_url: str) -> None:
    """As under a prefork server that loads the app, and uses it, before it forks."""
    script = """
        app.sync.dispatch("double", {"n": 0})
        children = []
        for n in (1, 2):
            pid = os.fork()
            if pid == 0:
                handle = app.sync.dispatch("double", {"n": n})
                assert handle.get().input == {"n": n}
                sys.exit(0)
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
        assert app.sync.dispatch("double", {"n": 3}).get().input == {"n": 3}
    """

    ended = run(script, database_url)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert count(database_url) == 4


def test_a_process_ends_in_good_order_without_closing_it(database_url: str) -> None:
    ended = run('app.sync.dispatch("double", {"n": 0})', database_url)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert count(database_url) == 1


def run(script: str, url: str) -> "subprocess.CompletedProcess[str]":
    lines = [
        "import os, sys",
        "from forge import Forge",
        f"app = Forge(database_url={url!r})",
        "@app.job",
        "async def double(ctx, input: dict): ...",
        *(line.removeprefix(" " * 8) for line in script.splitlines()),
    ]
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONASYNCIODEBUG": "0"},
        check=False,
    )


@asynccontextmanager
async def working(app: Forge) -> AsyncIterator[None]:
    worker = Worker(app)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(worker.started.wait(), 30)
    try:
        yield
    finally:
        worker.drain()
        await asyncio.wait_for(running, 30)
        await app.close()


async def in_thread(act: Callable[..., T], *args: Any) -> T:
    """Call as from a thread that knows nothing of the test's own loop."""
    return await asyncio.to_thread(act, *args)


def count(url: str, where: str = "true") -> int:
    with psycopg.connect(url) as conn:
        row = conn.execute(f"select count(*) from forge_jobs where {where}").fetchone()
    assert row is not None
    return int(row[0])


def execute(url: str, sql: str) -> None:
    with psycopg.connect(url) as conn:
        conn.execute(sql)
