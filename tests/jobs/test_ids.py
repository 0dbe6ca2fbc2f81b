"""Job ids: accepted as UUID or text; invalid ids are rejected immediately."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from forge import Forge, InvalidValue, JobContext
from tests.apps import Work

LATER = datetime.now(UTC) + timedelta(days=1)
NO_IDS: list[Any] = ["some text that is no id", "", None, 7, b"0" * 16]
VERBS: dict[str, Callable[[Forge, Any], Awaitable[Any]]] = {
    "get": lambda app, job_id: app.get(job_id),
    "cancel": lambda app, job_id: app.cancel(job_id),
    "delete": lambda app, job_id: app.delete(job_id),
    "run_now": lambda app, job_id: app.run_now(job_id),
    "reschedule": lambda app, job_id: app.reschedule(job_id, LATER),
    "reprioritise": lambda app, job_id: app.reprioritise(job_id, "high"),
    "move": lambda app, job_id: app.move(job_id, "bulk"),
}
SYNC_VERBS: dict[str, Callable[[Forge, Any], Any]] = {
    "handle": lambda app, job_id: app.sync.handle(job_id),
    "get": lambda app, job_id: app.sync.get(job_id),
    "cancel": lambda app, job_id: app.sync.cancel(job_id),
    "delete": lambda app, job_id: app.sync.delete(job_id),
    "run_now": lambda app, job_id: app.sync.run_now(job_id),
    "reschedule": lambda app, job_id: app.sync.reschedule(job_id, LATER),
    "reprioritise": lambda app, job_id: app.sync.reprioritise(job_id, "high"),
    "move": lambda app, job_id: app.sync.move(job_id, "bulk"),
    "the async handle": lambda app, job_id: app.handle(job_id),
}


@pytest.mark.parametrize("no_id", NO_IDS, ids=repr)
async def test_every_method_rejects_an_invalid_id(app: Forge, psql: Any, no_id: Any) -> None:
    for ask in VERBS.values():
        with pytest.raises(InvalidValue, match="job_id must be a UUID, not"):
            await ask(app, no_id)
    for ask in SYNC_VERBS.values():
        with pytest.raises(InvalidValue, match="job_id must be a UUID, not"):
            await asyncio.to_thread(ask, app, no_id)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_the_text_of_an_id_is_accepted(app: Forge, work: Work) -> None:
    @app.job
    async def echo(ctx: JobContext, input: dict[str, int]) -> dict[str, int]:
        return input

    await work(app)
    text = str((await echo.dispatch({"n": 1}, delay="1h")).id)

    await (await app.run_now(text)).result(10)

    assert await app.handle(text).result(10) == {"n": 1}
    assert (await app.get(text)).id == app.handle(text).id == UUID(text)


@pytest.mark.parametrize("at", [datetime(2031, 1, 1), 5, None], ids=repr)
async def test_reschedule_rejects_an_invalid_time(app: Forge, psql: Any, at: Any) -> None:
    @app.job
    async def ping(ctx: JobContext) -> None: ...

    job_id = (await ping.dispatch(delay="1h")).id

    with pytest.raises(InvalidValue, match=r"at .*datetime\.now\(timezone\.utc\)"):
        await app.reschedule(job_id, at)
    with pytest.raises(InvalidValue, match=r"at .*datetime\.now\(timezone\.utc\)"):
        app.sync.reschedule(job_id, at)
    with pytest.raises(InvalidValue, match=r"at 'tomorrow' is not a duration"):
        await app.reschedule(job_id, "tomorrow")

    assert await psql.fetchval("select count(*) from forge_jobs") == 1
