"""Mutations: writes and dispatches share one transaction."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, Field

from forge import Auth, DatabaseUnavailable, Forge, InvalidValue, MutationContext, Rejected
from forge.store.notify import WAKE
from tests.apps import Work
from tests.calls.mutations.conftest import ADD, User, written
from tests.faults.kit.process import until


class Registration(BaseModel):
    email: str = Field(alias="eMail")


async def test_a_mutation_commits_its_writes_and_its_jobs(
    app: Forge, work: Work, psql: Any, greeted: list[Any]
) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, input: Registration) -> User:
        user = await ctx.db.fetchval(ADD, input.email)
        await ctx.dispatch_job("welcome", {"user": user})
        assert await written(psql) == (0, 0)
        return User(id=user, email=input.email)

    await work(app)

    made = await app.call(register_user, {"eMail": "ada@example.org"})

    assert made == User(id=1, email="ada@example.org")
    assert await written(psql) == (1, 1)
    await until(lambda: _is(greeted, [(1, {}, None, None)]), 10, "its job ran")


async def test_concurrent_mutations_beyond_the_pool_all_commit(app: Forge, psql: Any) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> int:
        return await ctx.db.fetchval(ADD, email)

    emails = [f"{n}@example.org" for n in range(app.config.database.pool_size * 4)]

    made = await asyncio.gather(*(register_user.call({"email": email}) for email in emails))

    assert len(set(made)) == len(emails)
    assert await written(psql) == (len(emails), 0)


async def test_serializable_mutations_are_retried_after_a_conflict(app: Forge, psql: Any) -> None:
    tries: list[int] = []
    both = asyncio.Barrier(2)

    @app.mutation(isolation="serializable")
    async def append(ctx: MutationContext, input: dict) -> int:
        tries.append(input.pop("n"))
        count: int = await ctx.db.fetchval("select count(*) from users")
        if len(tries) <= 2:
            await both.wait()
        await ctx.db.execute(ADD, str(count))
        return count

    counts = await asyncio.gather(append.call({"n": 1}), append.call({"n": 2}))

    assert sorted(counts) == [0, 1]
    assert len(tries) > 2
    assert await written(psql) == (2, 0)


async def test_without_retries_a_conflict_raises_a_retryable_error(app: Forge, psql: Any) -> None:
    both = asyncio.Barrier(2)

    @app.mutation(isolation="serializable", retries=0)
    async def append(ctx: MutationContext) -> None:
        count = await ctx.db.fetchval("select count(*) from users")
        await both.wait()
        await ctx.db.execute(ADD, str(count))

    ended = await asyncio.gather(append.call(), append.call(), return_exceptions=True)

    (error,) = [each for each in ended if each is not None]
    assert isinstance(error, DatabaseUnavailable)
    assert "try again" in str(error)
    assert await written(psql) == (1, 0)


async def test_conflicts_are_not_retried_beyond_the_timeout(
    app: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.mutation(timeout="5s", retries=100)
    async def conflict(ctx: MutationContext) -> None:
        await ctx.db.execute("do $$ begin raise exception using errcode = '40001'; end $$")

    monkeypatch.setattr("forge.calls.run.FIRST_PAUSE", 3600)

    async with asyncio.timeout(30):
        with pytest.raises(DatabaseUnavailable, match="try again"):
            await conflict.call()


async def test_workers_are_woken_once_after_the_commit(
    app: Forge, psql: Any, greeted: list[Any]
) -> None:
    visible_jobs: list[int] = []

    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.dispatch_job("welcome", {"user": email})
        if not email:
            raise Rejected("no address")

    async def note(*_: Any) -> None:
        visible_jobs.append(await app.call(count))

    @app.mutation
    async def count(ctx: MutationContext) -> int:
        found: int = await ctx.db.fetchval("select count(*) from forge_jobs")
        return found

    await psql.add_listener(WAKE, note)
    with pytest.raises(Rejected):
        await register_user.call({"email": ""})
    await register_user.call({"email": "ada"})

    await until(lambda: _is(visible_jobs, [1]), 10, "one wake-up, when the job was visible")


async def test_its_jobs_have_the_callers_tenant_and_auth(
    app: Forge, work: Work, greeted: list[Any]
) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        assert (ctx.auth, ctx.tenant_id, ctx.correlation_id) == (ann, 7, tie)
        await ctx.dispatch_job("welcome", {"user": email})

    ann = Auth(name="ann", roles=["user"], tenant_id=7)
    tie = uuid4()
    await work(app)

    await register_user.call({"email": "ada"}, auth=ann, correlation_id=str(tie))

    await until(lambda: _is(greeted, [("ada", ann, 7, tie)]), 10, "its job ran")
    assert greeted[0][1].name == "ann"
    assert greeted[0][1].roles == ("user",)
    assert greeted[0][1].tenant_id == 7


async def test_a_mutation_cannot_dispatch_for_another_tenant(
    app: Forge, psql: Any, greeted: list[Any]
) -> None:
    @app.mutation
    async def reach(ctx: MutationContext, tenant: int | None) -> UUID:
        return (await ctx.dispatch_job("welcome", {"user": 1}, tenant_id=tenant)).id

    own = await reach.call({"tenant": 7}, tenant_id=7)
    by_operator = await reach.call({"tenant": 8})
    for other in (8, None):
        with pytest.raises(Rejected, match="bound to tenant 7"):
            await reach.call({"tenant": other}, tenant_id=7)

    found = dict(await psql.fetch("select id, tenant_id from forge_jobs"))
    assert found == {own: 7, by_operator: 8}


async def test_a_caller_bound_to_a_tenant_cannot_call_for_another(app: Forge) -> None:
    @app.mutation
    async def nothing(ctx: MutationContext) -> None: ...

    with pytest.raises(InvalidValue, match="auth is bound to tenant 7, and tenant_id is 8"):
        await nothing.call(auth={"tenant_id": 7}, tenant_id=8)


async def test_a_second_dispatch_with_the_same_key_is_deduplicated(
    app: Forge, greeted: list[Any]
) -> None:
    @app.mutation
    async def twice(ctx: MutationContext) -> list[bool]:
        handles = [
            await ctx.dispatch_job("welcome", {"user": 1}, idempotency_key="once") for _ in "ab"
        ]
        return [handle.deduplicated for handle in handles]

    assert await twice.call() == [False, True]


async def _is(seen: list[Any], expected: list[Any]) -> bool:
    return seen == expected
