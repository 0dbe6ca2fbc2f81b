"""Child processes that wait for their next attempt."""

import os
import signal

import psutil

from forge import Forge
from tests.faults.kit.process import until
from tests.flow.engine import handlers
from tests.flow.engine.conftest import Work


async def test_a_child_that_died_while_it_was_idle_is_nobodys_crash(app: Forge, work: Work) -> None:
    app.register(handlers.where)
    await work(app)
    first = await (await handlers.where.dispatch({})).result(30)

    os.kill(first["pid"], signal.SIGKILL)
    await until(lambda: _is_gone(first["pid"]), 10, "the idle child is dead")
    handle = await handlers.where.dispatch({})
    second = await handle.result(30)

    assert second["pid"] != first["pid"]
    job = await handle.get()
    assert (job.attempts, job.lease, job.crashes, job.lone_crashes) == (1, 1, 0, 0)


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
