"""Mutations that fail, hang or lose their connection leave nothing behind."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from forge import DatabaseUnavailable, Forge, ForgeError, InvalidPayload, MutationContext, TimedOut
from tests.calls.mutations.conftest import ADD, User, none_open, open_transactions, written
from tests.faults.kit.process import until


async def test_an_error_rolls_back_writes_and_dispatches(
    app: Forge, psql: Any, greeted: list[Any]
) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.db.execute(ADD, email)
        await ctx.dispatch_job("welcome", {"user": 1})
        raise LookupError("after both")

    with pytest.raises(LookupError, match="after both"):
        await app.call(register_user, {"email": "ada@example.org"})

    assert await written(psql) == (0, 0)
    assert await open_transactions(psql) == 0


@pytest.mark.parametrize("cancels", [1, 2])
async def test_a_cancelled_mutation_leaves_nothing_and_no_open_transaction(
    app: Forge, psql: Any, greeted: list[Any], cancels: int
) -> None:
    began = asyncio.Event()

    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.db.execute(ADD, email)
        await ctx.dispatch_job("welcome", {"user": 1})
        began.set()
        await ctx.db.execute("select pg_sleep(60)")

    task = asyncio.create_task(app.call(register_user, {"email": "ada"}))
    await began.wait()
    for _ in range(cancels):
        task.cancel()
        await asyncio.sleep(0)  # the second cancellation arrives while the first is handled

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await written(psql) == (0, 0)
    await until(lambda: none_open(psql), 10, "no transaction is left open")
    with pytest.raises(asyncpg.UniqueViolationError):  # the app continues with other connections
        await _twice(app)


async def test_a_mutation_that_times_out_is_rolled_back(app: Forge, psql: Any) -> None:
    @app.mutation(timeout="50ms")
    async def slow(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.db.execute("select pg_sleep(60)")

    with pytest.raises(TimedOut, match="slow ran longer than its timeout of 50ms"):
        await slow.call()

    assert await written(psql) == (0, 0)
    await until(lambda: none_open(psql), 10, "no transaction is left open")


async def test_a_statement_that_ignores_cancel_is_ended_with_its_session(
    app: Forge, psql: Any
) -> None:
    @app.mutation(timeout="200ms")
    async def stubborn(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.db.execute(
            "do $$ begin loop "
            "begin perform pg_sleep(60); exception when query_canceled then null; end; "
            "end loop; end $$"
        )

    with pytest.raises(TimedOut):
        await stubborn.call()

    await until(lambda: none_open(psql), 10, "no transaction is left open")
    assert await written(psql) == (0, 0)


async def test_a_timeout_error_of_the_handler_itself_propagates(app: Forge) -> None:
    @app.mutation
    async def impatient(ctx: MutationContext) -> None:
        raise TimeoutError("an inner timeout")

    with pytest.raises(TimeoutError, match="an inner timeout") as raised:
        await impatient.call()

    assert not isinstance(raised.value, ForgeError)


async def test_a_mutation_whose_connection_is_killed_wrote_nothing(
    app: Forge, psql: Any, greeted: list[Any]
) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.db.execute(ADD, email)
        pid = await ctx.db.fetchval("select pg_backend_pid()")
        await psql.execute("select pg_terminate_backend($1, 5000)", pid)
        await ctx.dispatch_job("welcome", {"user": 1})

    with pytest.raises(DatabaseUnavailable):
        await app.call(register_user, {"email": "ada"})

    assert await written(psql) == (0, 0)


async def test_a_connection_killed_before_the_commit_raises(app: Forge, psql: Any) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.db.execute(ADD, email)
        pid = await ctx.db.fetchval("select pg_backend_pid()")
        await psql.execute("select pg_terminate_backend($1, 5000)", pid)

    with pytest.raises(DatabaseUnavailable):
        await app.call(register_user, {"email": "ada"})

    assert await written(psql) == (0, 0)


async def test_a_mutation_that_swallows_a_sql_error_is_rolled_back(app: Forge, psql: Any) -> None:
    @app.mutation
    async def careless(ctx: MutationContext) -> str:
        await ctx.db.execute(ADD, "ada")
        with suppress(asyncpg.UniqueViolationError):
            await ctx.db.execute(ADD, "ada")
        return "all is well"

    with pytest.raises(ForgeError, match=r"nothing can be committed; wrap .*ctx\.db\.transaction"):
        await careless.call()

    assert await written(psql) == (0, 0)


async def test_a_savepoint_rolls_back_one_failed_statement(app: Forge, psql: Any) -> None:
    @app.mutation
    async def careful(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        try:
            async with ctx.db.transaction():
                await ctx.db.execute(ADD, "ada")
        except asyncpg.UniqueViolationError:
            await ctx.db.execute(ADD, "ada the second")

    await careful.call()

    assert await written(psql) == (2, 0)


async def test_an_invalid_output_rolls_back_the_mutation(app: Forge, psql: Any) -> None:
    @app.mutation
    async def wrong(ctx: MutationContext) -> User:
        await ctx.db.execute(ADD, "ada")
        return {"id": "one", "email": "ada"}  # type: ignore[return-value]

    with pytest.raises(InvalidPayload, match=r"the output of wrong does not fit: \$\.id"):
        await wrong.call()

    assert await written(psql) == (0, 0)


async def _twice(app: Forge) -> None:
    @app.mutation
    async def twice(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.db.execute(ADD, "ada")

    await twice.call()
