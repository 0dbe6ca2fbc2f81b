"""The parent of a job: the job whose handler dispatched it, however it did that."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import forge
from forge import Forge, JobContext, MutationContext
from tests.apps import Work
from tests.faults.kit.process import until
from tests.store.placing import Psql

elsewhere = Forge()


@forge.job(isolation="process")
async def in_child(ctx: JobContext) -> None:
    async with ctx.db.acquire() as conn, conn.transaction():
        await elsewhere.dispatch("leaf", {"way": "in_child"}, conn=conn)


def add_parents(app: Forge) -> None:
    """Register a job for each way to dispatch, which does it once, and the job it dispatches."""

    @app.job
    async def leaf(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @app.job
    async def on_loop(ctx: JobContext) -> None:
        await leaf.dispatch({"way": "on_loop"})

    @app.job
    async def in_task(ctx: JobContext) -> None:
        await asyncio.create_task(app.dispatch("leaf", {"way": "in_task"}, tags=["x"]))

    @app.job
    def in_thread(ctx: JobContext) -> None:
        app.sync.dispatch(leaf, {"way": "in_thread"})

    @app.job
    async def by_copy(ctx: JobContext) -> None:
        await app.dispatch_many(leaf, [{"way": "by_copy"}])

    @app.job
    async def on_a_connection(ctx: JobContext) -> None:
        async with ctx.db.acquire() as conn, conn.transaction():
            await leaf.dispatch({"way": "on_a_connection"}, conn=conn)

    @app.mutation
    async def subscribe(ctx: MutationContext) -> None:
        await ctx.dispatch_job(leaf, {"way": "by_mutation"})

    @app.job
    async def by_mutation(ctx: JobContext) -> None:
        await app.call(subscribe)

    @app.job
    async def as_an_orphan(ctx: JobContext) -> None:
        await leaf.dispatch({"way": "as_an_orphan"}, parent_id=None)

    @app.job
    async def for_another(ctx: JobContext, input: dict[str, Any]) -> None:
        await leaf.dispatch({"way": "for_another"}, parent_id=UUID(input["parent"]))

    @app.schedule("by_schedule")
    async def by_schedule(ctx: Any) -> None:
        await leaf.dispatch({"way": "by_schedule"})

    app.register(in_child)


async def test_a_dispatch_in_a_handler_names_the_handlers_job_as_parent(
    app: Forge, work: Work, psql: "Psql[Any]"
) -> None:
    add_parents(app)
    await work(app)
    other = uuid4()
    ways = ["on_loop", "in_task", "in_thread", "in_child", "by_copy", "on_a_connection"]
    ways += ["by_mutation", "as_an_orphan"]

    dispatched = {way: (await app.dispatch(way)).id for way in ways}
    await app.dispatch("for_another", {"parent": str(other)})
    await app.schedules.ensure("by_schedule", next_run_at=datetime.now(UTC))
    await app.dispatch("leaf", {"way": "outside"})

    parents = "select input ->> 'way' as way, parent_id from forge_jobs where job_type = 'leaf'"

    expected = {*ways, "for_another", "by_schedule", "outside"}

    async def none_is_missing() -> bool:
        missing = expected - {row["way"] for row in await psql.fetch(parents)}
        return not missing

    await until(none_is_missing, 10, "all have dispatched")
    found = {row["way"]: row["parent_id"] for row in await psql.fetch(parents)}
    orphans = dict.fromkeys(["as_an_orphan", "by_schedule", "outside"])
    assert found == dispatched | {"for_another": other} | orphans


async def test_children_dispatched_together_share_an_insert(
    app: Forge, work: Work, psql: "Psql[Any]"
) -> None:
    statements: list[str] = []
    app.observers.append(lambda statement, seconds, error: statements.append(statement.sql))

    @app.job
    async def leaf(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @app.job
    async def fan_out(ctx: JobContext) -> None:
        await asyncio.gather(*(leaf.dispatch({"n": n}) for n in range(100)))

    await work(app)
    handle = await fan_out.dispatch()
    await handle.result(30)

    children = await app.list_jobs(parent_id=handle.id, limit=200)
    assert len(children.items) == 100
    assert len([sql for sql in statements if "insert into forge_jobs" in sql]) <= 10
