"""`app.sync`: shared by threads, beside an event loop, after a fork, and when closed."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from forge import Forge, ForgeError
from forge.sync.app import SyncForge
from forge.sync.loop import LoopThread
from tests.sync.conftest import count


def test_an_app_has_one_sync_interface(app: Forge) -> None:
    assert app.sync is app.sync


async def test_it_works_in_threads_beside_the_async_app(app: Forge) -> None:
    before = await app.dispatch("double", {"n": 1})
    between = await asyncio.to_thread(app.sync.dispatch, "double", {"n": 2})
    after = await app.dispatch("double", {"n": 3})

    found = [await asyncio.to_thread(app.sync.get, it.id) for it in (before, between, after)]
    assert [job.input["n"] for job in found] == [1, 2, 3]
    await app.close()


async def test_inside_a_running_loop_it_raises_instead_of_blocking_it(
    app: Forge, database_url: str
) -> None:
    handle = await asyncio.to_thread(app.sync.dispatch, "double", {"n": 1})
    blocking: list[Callable[[], object]] = [
        lambda: app.sync.dispatch("double", {"n": 2}),
        lambda: app.sync.dispatch_many("double", [{"n": 2}]),
        lambda: app.sync.get(handle.id),
        lambda: app.sync.cancel(handle.id),
        lambda: app.sync.schedules.list(),
        lambda: app.sync.dead_letters.list(),
        lambda: app.sync.call("double"),
        lambda: handle.result(timeout=1),
        lambda: next(handle.updates()),
    ]

    for block in blocking:
        with pytest.raises(ForgeError, match=r"would block the event loop.*await app\.dispatch"):
            block()

    assert count(database_url) == 1
    await app.close()


def test_threads_share_it(sync: SyncForge, database_url: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        handles = list(threads.map(lambda n: sync.dispatch("double", {"n": n}), range(200)))

    assert len({handle.id for handle in handles}) == 200
    assert count(database_url) == 200


def test_it_opens_again_after_close(sync: SyncForge, database_url: str) -> None:
    sync.dispatch("double", {"n": 1})
    sync.close()
    sync.close()
    sync.dispatch("double", {"n": 1})

    assert count(database_url) == 2


def test_closing_the_app_closes_it(app: Forge, database_url: str) -> None:
    app.sync.dispatch("double", {"n": 1})

    asyncio.run(app.close())

    assert "forge-sync" not in {thread.name for thread in threading.enumerate()}


def test_a_forked_process_opens_its_own_connections(database_url: str) -> None:
    """As in a prefork server that loads and uses the app before it forks."""
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


def test_a_process_exits_cleanly_without_closing_it(database_url: str) -> None:
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


def test_closing_cancels_the_tasks_of_its_loop() -> None:
    thread = LoopThread()
    ended = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def start() -> "asyncio.Task[None]":
        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        return task

    thread.wait(start())
    thread.stop()

    assert ended.is_set()
