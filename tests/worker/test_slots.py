"""Slots: one task per attempt, unless the attempts never let go of the loop."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from forge.worker.attempts import LONGEST_ROW, Slots

SEEN: ContextVar[str] = ContextVar("SEEN", default="nothing")


class Attempt:
    """As much of an attempt as slots know: where it runs."""

    def __init__(self, act: Callable[[], Awaitable[Any]]) -> None:
        self.act = act
        self.task: asyncio.Task[None] | None = None
        self.came_to: Any = None
        self.ended = asyncio.Event()


async def run(attempt: Any) -> None:
    try:
        attempt.came_to = await attempt.act()
    except asyncio.CancelledError:
        attempt.came_to = "cancelled"
    attempt.ended.set()


async def take(*acts: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Give slots all of these at once and wait until they have ended."""
    here: Any = Slots(run)
    attempts = [Attempt(act) for act in acts]
    for attempt in attempts:
        here.take(attempt)
    async with asyncio.timeout(10):
        for attempt in attempts:
            await attempt.ended.wait()
    return attempts


async def at_once() -> str:
    return "done"


async def test_attempts_that_wait_for_nothing_share_a_task() -> None:
    attempts = await take(*[at_once] * 20)

    assert [a.came_to for a in attempts] == ["done"] * 20
    assert len({a.task for a in attempts}) < 5


async def test_attempts_that_wait_run_side_by_side_in_tasks_of_their_own() -> None:
    together = asyncio.Barrier(100)

    attempts = await take(*[together.wait] * 100)

    assert sorted(a.came_to for a in attempts) == list(range(100))
    assert len({a.task for a in attempts}) == 100


async def test_an_attempt_that_waited_does_not_lend_its_task_to_the_next() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)  # the shortest wait there is

    attempts = await take(*[waits, at_once] * 10)

    rows = [[a.act for a in attempts if a.task is task] for task in {a.task for a in attempts}]
    assert all(waits not in row[:-1] for row in rows)


async def test_what_one_attempt_sets_in_its_context_is_not_seen_by_the_next() -> None:
    async def mark() -> str:
        before = SEEN.get()
        SEEN.set("a mark")
        return before

    attempts = await take(*[mark] * 10)

    assert {a.came_to for a in attempts} == {"nothing"}


async def test_an_attempt_that_cancels_its_task_does_not_cancel_the_next() -> None:
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def waits() -> str:
        await asyncio.sleep(0)  # the shortest wait there is
        return "done"

    attempts = await take(cancels, waits, cancels, waits)

    assert [a.came_to for a in attempts] == [None, "done", None, "done"]


async def test_a_long_row_lets_the_loop_turn() -> None:
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    async def computes() -> int:
        until = loop.time() + LONGEST_ROW
        while loop.time() < until:
            pass
        return turns

    loop = asyncio.get_running_loop()
    loop.call_soon(turn)
    attempts = await take(*[computes] * 10)

    seen = [a.came_to for a in attempts]
    assert len(set(seen)) > 5, "the loop turned between attempts, not after all of them"
