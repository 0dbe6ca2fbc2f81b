"""Priorities: the most urgent first, then the oldest."""

import asyncio
from typing import Any

import pytest

from forge import Forge, InvalidValue, JobContext, Priority
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

LEVELS = {"critical": 100, "high": 75, "normal": 50, "low": 25, "background": 0}


async def test_one_slot_takes_the_most_urgent_first_and_then_the_oldest(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(max_concurrent=1)
    ran: list[tuple[str, int]] = []
    _define(app, ran)
    expected = []
    for n in range(30):
        level = list(LEVELS)[(n * 3) % 5]
        await app.dispatch(("one", "two")[n % 2], {"level": level, "n": n}, priority=level)
        expected.append((level, n))

    await work(app)

    await until(lambda: len(ran) == 30, 20, "all ran")
    assert ran == sorted(expected, key=lambda entry: (-LEVELS[entry[0]], entry[1]))


async def test_a_more_urgent_job_that_comes_later_overtakes_those_that_wait(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(max_concurrent=1)
    ran: list[tuple[str, int]] = []
    _define(app, ran)
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def block(ctx: JobContext) -> None:
        begun.set()
        await go_on.wait()

    worker = await work(app)
    # Jobs that are not known to be quick are not fetched before there is a slot for them.
    assert worker.held.mean_seconds >= 1
    blocking = await block.dispatch()
    await begun.wait()
    for n in range(3):
        await app.dispatch("one", {"level": "normal", "n": n})
    await app.dispatch("two", {"level": "critical", "n": 9}, priority="critical")
    go_on.set()
    await blocking.result(10)

    await until(lambda: len(ran) == 4, 20, "all ran")
    assert ran[0] == ("critical", 9)
    assert ran[1:] == [("normal", 0), ("normal", 1), ("normal", 2)]


@pytest.mark.parametrize(("name", "value"), LEVELS.items())
async def test_a_priority_is_given_by_name_or_by_value(app: Forge, name: str, value: int) -> None:
    _define(app, [])

    for given in (name, name.upper(), value, Priority(value)):
        handle = await app.dispatch("one", {}, priority=given)
        assert (await handle.get()).priority == value


async def test_without_one_the_type_says_how_urgent_it_is(app: Forge) -> None:
    @app.job(priority="high")
    async def urgent(ctx: JobContext) -> None: ...

    assert (await (await urgent.dispatch()).get()).priority == 75
    assert (await (await urgent.dispatch(priority="low")).get()).priority == 25


@pytest.mark.parametrize("given", ["urgent", 51, -1, True, 50.0, "50", "", [50]])
async def test_a_priority_that_does_not_exist_is_refused_with_those_that_do(
    app: Forge, psql: Any, given: Any
) -> None:
    _define(app, [])

    with pytest.raises(InvalidValue, match=r'"critical" \(100\), "high" \(75\)'):
        await app.dispatch("one", {}, priority=given)
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


def _define(app: Forge, ran: list[tuple[str, int]]) -> None:
    @app.job
    async def one(ctx: JobContext, input: dict) -> None:
        ran.append((input["level"], input["n"]))

    @app.job
    async def two(ctx: JobContext, input: dict) -> None:
        ran.append((input["level"], input["n"]))
