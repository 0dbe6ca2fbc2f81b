"""A worker that lives and claims nothing, as one whose claimer is stuck."""

import asyncio
from typing import Any

from forge import Worker
from tests.faults.kit.process import until


async def stop_claiming(worker: Worker) -> None:
    """Stop its claimer, and wait for a claim that is under way."""
    assert _is_claiming(worker)
    worker.claimer.stop()
    await until(lambda: not _is_claiming(worker), 30, "the claimer has stopped")


def _is_claiming(worker: Worker) -> bool:
    return any(_self_of(task.get_coro()) is worker.claimer for task in asyncio.all_tasks())


def _self_of(coroutine: Any) -> Any:
    return coroutine.cr_frame and coroutine.cr_frame.f_locals.get("self")
