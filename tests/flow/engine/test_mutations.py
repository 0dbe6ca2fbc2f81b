"""Mutations: one transaction for what they write and what they dispatch."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict
from uuid import UUID, uuid4

import asyncpg
import pytest
from pydantic import BaseModel, Field

import forge
from forge import (
    Auth,
    DatabaseUnavailable,
    Forge,
    ForgeError,
    InvalidPayload,
    InvalidValue,
    JobContext,
    MutationContext,
    NotRegistered,
    Rejected,
    TimedOut,
)
from forge.store.notify import WAKE
from tests.faults.kit.process import until
from tests.flow.engine.conftest import Work

ADD = "insert into users (email) values ($1) returning id"


class Registration(BaseModel):
    email: str = Field(alias="eMail")


class User(BaseModel):
    id: int
    email: str


@dataclass
class Point:
    x: int


class Film(TypedDict):
    title: str


@pytest.fixture(autouse=True)
async def users(psql: Any) -> None:
    await psql.execute("create table users (id serial primary key, email text unique)")


@pytest.fixture
def greeted(app: Forge) -> list[Any]:
    """What the job `welcome` was given, and by whom."""
    seen: list[Any] = []

    @app.job
    async def welcome(ctx: JobContext, input: dict) -> None:
        seen.append((input["user"], ctx.auth, ctx.tenant_id, ctx.correlation_id))

    return seen


async def test_what_a_mutation_wrote_and_dispatched_is_there_and_runs(
    app: Forge, work: Work, psql: Any, greeted: list[Any]
) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, input: Registration) -> User:
        user = await ctx.db.fetchval(ADD, input.email)
        await ctx.dispatch_job("welcome", {"user": user})
        assert await _counts(psql) == (0, 0)
        return User(id=user, email=input.email)

    await work(app)

    made = await app.call(register_user, {"eMail": "ada@example.org"})

    assert made == User(id=1, email="ada@example.org")
    assert await _counts(psql) == (1, 1)
    await until(lambda: _is(greeted, [(1, None, None, None)]), 10, "its job ran")


async def test_an_error_undoes_both(app: Forge, psql: Any, greeted: list[Any]) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.db.execute(ADD, email)
        await ctx.dispatch_job("welcome", {"user": 1})
        raise LookupError("after both")

    with pytest.raises(LookupError, match="after both"):
        await app.call(register_user, {"email": "ada@example.org"})

    assert await _counts(psql) == (0, 0)
    assert await _open_transactions(psql) == 0


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
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _counts(psql) == (0, 0)
    await until(lambda: _none_open(psql), 10, "no transaction is left open")
    with pytest.raises(asyncpg.UniqueViolationError):  # the app goes on with other connections
        await _twice(app)


async def test_a_mutation_that_takes_too_long_is_rolled_back(app: Forge, psql: Any) -> None:
    @app.mutation(timeout="50ms")
    async def slow(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.db.execute("select pg_sleep(60)")

    with pytest.raises(TimedOut, match="slow ran longer than its timeout of 50ms"):
        await slow.call()

    assert await _counts(psql) == (0, 0)
    await until(lambda: _none_open(psql), 10, "no transaction is left open")


async def test_a_statement_that_will_not_be_cancelled_is_ended_with_its_session(
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

    await until(lambda: _none_open(psql), 10, "no transaction is left open")
    assert await _counts(psql) == (0, 0)


async def test_a_timeout_of_the_handlers_own_stays_what_it_is(app: Forge) -> None:
    @app.mutation
    async def impatient(ctx: MutationContext) -> None:
        raise TimeoutError("somebody else's")

    with pytest.raises(TimeoutError, match="somebody else's") as raised:
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

    assert await _counts(psql) == (0, 0)


async def test_a_connection_killed_before_the_commit_is_not_taken_for_success(
    app: Forge, psql: Any
) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.db.execute(ADD, email)
        pid = await ctx.db.fetchval("select pg_backend_pid()")
        await psql.execute("select pg_terminate_backend($1, 5000)", pid)

    with pytest.raises(DatabaseUnavailable):
        await app.call(register_user, {"email": "ada"})

    assert await _counts(psql) == (0, 0)


async def test_an_error_of_sql_that_was_swallowed_is_not_taken_for_success(
    app: Forge, psql: Any
) -> None:
    @app.mutation
    async def careless(ctx: MutationContext) -> str:
        await ctx.db.execute(ADD, "ada")
        with suppress(asyncpg.UniqueViolationError):
            await ctx.db.execute(ADD, "ada")
        return "all is well"

    with pytest.raises(ForgeError, match=r"nothing can be committed; wrap .*ctx\.db\.transaction"):
        await careless.call()

    assert await _counts(psql) == (0, 0)


async def test_a_statement_that_may_fail_is_undone_alone(app: Forge, psql: Any) -> None:
    @app.mutation
    async def careful(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        try:
            async with ctx.db.transaction():
                await ctx.db.execute(ADD, "ada")
        except asyncpg.UniqueViolationError:
            await ctx.db.execute(ADD, "ada the second")

    await careful.call()

    assert await _counts(psql) == (2, 0)


async def test_an_output_that_cannot_be_told_undoes_the_mutation(app: Forge, psql: Any) -> None:
    @app.mutation
    async def wrong(ctx: MutationContext) -> User:
        await ctx.db.execute(ADD, "ada")
        return {"id": "one", "email": "ada"}  # type: ignore[return-value]

    with pytest.raises(InvalidPayload, match=r"the output of wrong does not fit: \$\.id"):
        await wrong.call()

    assert await _counts(psql) == (0, 0)


async def test_concurrent_mutations_beyond_the_pool_all_commit(app: Forge, psql: Any) -> None:
    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> int:
        return await ctx.db.fetchval(ADD, email)

    emails = [f"{n}@example.org" for n in range(app.config.database.pool_size * 4)]

    made = await asyncio.gather(*(register_user.call({"email": email}) for email in emails))

    assert len(set(made)) == len(emails)
    assert await _counts(psql) == (len(emails), 0)


async def test_serializable_mutations_are_run_again_at_a_conflict(app: Forge, psql: Any) -> None:
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
    assert await _counts(psql) == (2, 0)


async def test_without_retries_a_conflict_says_try_again(app: Forge, psql: Any) -> None:
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
    assert await _counts(psql) == (1, 0)


async def test_the_workers_are_woken_by_the_commit_and_by_nothing_else(
    app: Forge, psql: Any, greeted: list[Any]
) -> None:
    heard: list[int] = []

    @app.mutation
    async def register_user(ctx: MutationContext, email: str) -> None:
        await ctx.dispatch_job("welcome", {"user": email})
        if not email:
            raise Rejected("no address")

    async def note(*_: Any) -> None:
        heard.append(await app.call(count))

    @app.mutation
    async def count(ctx: MutationContext) -> int:
        found: int = await ctx.db.fetchval("select count(*) from forge_jobs")
        return found

    await psql.add_listener(WAKE, note)
    with pytest.raises(Rejected):
        await register_user.call({"email": ""})
    await register_user.call({"email": "ada"})

    await until(lambda: _is(heard, [1]), 10, "one call, when the job could be seen")


async def test_its_jobs_are_the_callers(app: Forge, work: Work, greeted: list[Any]) -> None:
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


async def test_nobody_dispatches_for_another_tenant(
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


async def test_who_is_bound_to_a_tenant_cannot_be_called_for_another(app: Forge) -> None:
    @app.mutation
    async def nothing(ctx: MutationContext) -> None: ...

    with pytest.raises(InvalidValue, match="auth is bound to tenant 7, and tenant_id is 8"):
        await nothing.call(auth={"tenant_id": 7}, tenant_id=8)


async def test_a_second_dispatch_with_the_same_key_is_known(app: Forge, greeted: list[Any]) -> None:
    @app.mutation
    async def twice(ctx: MutationContext) -> list[bool]:
        asked = [
            await ctx.dispatch_job("welcome", {"user": 1}, idempotency_key="once") for _ in "ab"
        ]
        return [handle.deduplicated for handle in asked]

    assert await twice.call() == [False, True]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"email": "ada"}, ("ada", 1, None)),
        ({"email": "ada", "copies": "2", "film": {"title": "M"}}, ("ada", 2, {"title": "M"})),
    ],
)
async def test_plain_parameters_are_given_by_name(
    app: Forge, given: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    @app.mutation
    async def post(
        ctx: MutationContext,
        email: Annotated[str, Field(min_length=2)],
        copies: int = 1,
        *,
        film: Film | None = None,
    ) -> tuple[Any, ...]:
        return email, copies, film

    assert await post.call(given) == expected


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "$.email"),
        ({"email": 5}, "$.email"),
        ({"email": "a"}, "$.email"),
        ({"email": "ada", "copies": "many"}, "$.copies"),
        ({"email": "ada", "nonsense": 1}, "$.nonsense"),
        (["ada"], "$"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_with_their_path(
    app: Forge, given: Any, path: str
) -> None:
    @app.mutation
    async def post(
        ctx: MutationContext, email: Annotated[str, Field(min_length=2)], copies: int = 1
    ) -> None:
        raise AssertionError("it must not run")

    with pytest.raises(InvalidPayload, match="the input of post does not fit") as refused:
        await post.call(given)

    assert [fault.path for fault in refused.value.faults] == [path]


async def test_one_parameter_that_is_an_object_takes_the_whole_input(app: Forge) -> None:
    @app.mutation
    async def move(ctx: MutationContext, point: Point) -> Point:
        return Point(point.x + 1)

    @app.mutation
    async def show(ctx: MutationContext, film: Film) -> str:
        return film["title"]

    @app.mutation
    async def echo(ctx: MutationContext, anything: dict[str, Any]) -> Any:
        return anything

    assert await move.call(Point(1)) == Point(2)
    assert await move.call({"x": 2}) == Point(3)
    assert await show.call({"title": "M"}) == "M"
    assert await echo.call({"a": [1]}) == {"a": [1]}
    with pytest.raises(InvalidPayload, match="NUL"):
        await echo.call({"a": "\0"})


async def test_a_definition_is_still_a_function(app: Forge, psql: Any) -> None:
    @forge.mutation
    async def register_user(ctx: Any, email: str) -> str:
        return f"{ctx}: {email}"

    assert await register_user("a context of the test", "ada") == "a context of the test: ada"
    with pytest.raises(NotRegistered, match=r"app\.register\(register_user\)"):
        await register_user.call({"email": "ada"})

    app.register(register_user)

    assert (await app.call("register_user", {"email": "ada"})).endswith("ada")


async def test_a_name_that_is_not_known_or_taken_is_refused(app: Forge) -> None:
    @app.mutation
    async def same(ctx: MutationContext) -> None: ...

    with pytest.raises(NotRegistered, match="no mutation or action named 'other'"):
        await app.call("other")
    with pytest.raises(InvalidValue, match="there is a mutation named 'same' already"):

        @app.action(name="same")
        async def another(ctx: Any) -> None: ...


def test_what_cannot_be_a_mutation_is_refused_when_it_is_defined() -> None:
    def plain(ctx: Any) -> None: ...

    async def without() -> None: ...

    async def many(ctx: Any, *rest: str) -> None: ...

    async def good(ctx: Any) -> None: ...

    refusals: list[tuple[Any, dict[str, Any], str]] = [
        (plain, {}, "`async def`.*to_thread"),
        (without, {}, "the first parameter is the context"),
        (many, {}, "cannot be given by name"),
        (good, {"name": "a/b"}, "part of its address"),
        (good, {"role": "king"}, "role is one of user, staff, manager"),
        (good, {"timeout": "soon"}, "good: timeout"),
        (good, {"isolation": "perfect"}, "isolation is one of read_committed"),
        (good, {"retries": -1}, "retries is a whole number"),
        (good, {"priority": 1}, "no attribute 'priority'; it takes name, role, timeout"),
    ]
    for handler, attributes, message in refusals:
        with pytest.raises(InvalidValue, match=message):
            forge.mutation(**attributes)(handler)


async def _counts(psql: Any) -> tuple[int, int]:
    users = await psql.fetchval("select count(*) from users")
    return users, await psql.fetchval("select count(*) from forge_jobs")


async def _open_transactions(psql: Any) -> int:
    found: int = await psql.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid() and xact_start is not null and backend_type = 'client backend'"
    )
    return found


async def _none_open(psql: Any) -> bool:
    return await _open_transactions(psql) == 0


async def _is(seen: list[Any], expected: list[Any]) -> bool:
    return seen == expected


async def _twice(app: Forge) -> None:
    @app.mutation
    async def twice(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.db.execute(ADD, "ada")

    await twice.call()
