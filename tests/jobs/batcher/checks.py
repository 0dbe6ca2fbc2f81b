"""What must hold of concurrent dispatches; each check fails on a batcher that breaks it."""

import asyncio
from typing import Any

from forge import JobHandle
from forge.core.errors import StatementRefused
from forge.jobs.prepare import prepare
from tests.jobs.batcher.conftest import TIMEOUT, Stage, ended

NAMES = [f"name {number}" for number in range(18)]


async def each_call_returns_after_its_own_commit(stage: Stage) -> None:
    async with stage.stalled():
        calls = await stage.start(NAMES)

        assert not any(call.done() for call in calls)
        assert await stage.names() == set()

    handles = await ended(calls)
    for name, handle in zip(["first", "second", *NAMES], handles, strict=True):
        assert isinstance(handle, JobHandle)
        assert not handle.deduplicated
        assert (await stage.app.get(handle.id)).input == {"name": name}


async def one_refused_call_fails_alone(stage: Stage) -> None:
    await stage.psql.execute(
        "alter table forge_jobs add constraint polite check (input ->> 'name' <> 'rude')"
    )
    names = [*NAMES[:7], "rude", *NAMES[7:]]

    results = await ended(await stage.dispatch_together(names))

    errors = {
        name: result
        for name, result in zip(["first", "second", *names], results, strict=True)
        if not isinstance(result, JobHandle)
    }
    assert list(errors) == ["rude"]
    assert isinstance(errors["rude"], StatementRefused)
    assert await stage.names() == {"first", "second", *NAMES}


async def each_insert_runs_as_the_tenant_of_its_jobs(stage: Stage) -> None:
    """The app logs in as forge_api, under row security."""
    await stage.psql.execute(
        """
        create table acted_for (job_tenant bigint, caller text);
        create function note_caller() returns trigger language plpgsql security definer as $$
        begin
            insert into acted_for values (new.tenant_id, current_setting('forge.tenant_id', true));
            return new;
        end $$;
        create trigger note_caller before insert on forge_jobs
            for each row execute function note_caller();
        """
    )
    encoder = await stage.app.catalog.find("greet")
    insert = (await stage.batcher).insert
    async with stage.stalled():
        calls = [
            asyncio.create_task(
                insert(prepare(encoder, {"name": f"{n}"}, {"tenant_id": n % 3}), n % 3)
            )
            for n in range(60)
        ]
        await stage.until_blocked(5)  # as many inserts as half of the pool

    results = await ended(calls)

    assert [result for result in results if isinstance(result, BaseException)] == []
    callers = await stage.psql.fetch("select * from acted_for")
    assert len(callers) == 60
    for job_tenant, caller in callers:
        assert f'{{"tenant_id":{job_tenant}}}' in caller


async def every_waiting_call_is_served(stage: Stage) -> None:
    """The test lowers the limits, so that one insert leaves most calls waiting."""
    results = await ended(await stage.dispatch_together(NAMES))

    assert all(isinstance(result, JobHandle) for result in results)
    assert await stage.names() == {"first", "second", *NAMES}


async def workers_are_woken_after_a_shared_insert(stage: Stage) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    def hear(connection: Any, pid: int, channel: str, payload: str) -> None:
        heard.put_nowait(payload)

    async with stage.stalled():
        calls = await stage.start(NAMES)
        # It listens from the commit on that also releases the lock.
        await stage.psql.add_listener("forge_wake", hear)
    await ended(calls)

    async with asyncio.timeout(TIMEOUT):
        announced = 0
        while announced < len(NAMES):
            announced += int((await heard.get()).split()[0])
