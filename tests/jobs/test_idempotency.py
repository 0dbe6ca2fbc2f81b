"""Idempotency: a second dispatch with the same key returns the first job, in every way."""

import asyncio
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from forge import Forge, InvalidValue, JobContext
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

# Inside a transaction pg_stat_activity keeps the sessions of its first read.
BLOCKED = "select count(*) from pg_locks where pg_backend_pid() = any (pg_blocking_pids(pid))"


class Payment(BaseModel):
    payment_id: str
    amount: int = 0


async def test_an_explicit_key_dispatches_once_and_reports_duplicates(
    app: Forge, psql: Any
) -> None:
    @app.job
    async def pay(ctx: JobContext, input: dict) -> None: ...

    first = await pay.dispatch({"n": 1}, idempotency_key="k")
    second = await pay.dispatch({"n": 2}, idempotency_key="k")

    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert first.id == second.id
    assert await psql.fetchval("select count(*) from forge_jobs") == 1
    assert (await first.get()).idempotency_key == "k"


async def test_the_key_of_a_finished_job_still_returns_it(app: Forge, work: Work) -> None:
    calls: list[int] = []

    @app.job(idempotent="input.payment_id")
    async def pay(ctx: JobContext, input: Payment) -> str:
        calls.append(input.amount)
        return "paid"

    await work(app)
    await (await pay.dispatch(Payment(payment_id="p1", amount=5))).result(10)
    again = await pay.dispatch(Payment(payment_id="p1", amount=5))

    assert again.deduplicated
    assert await again.result(10) == "paid"
    assert calls == [5]


async def test_idempotent_true_uses_the_whole_input_in_canonical_form(app: Forge) -> None:
    @app.job(idempotent=True)
    async def pay(ctx: JobContext, input: dict) -> None: ...

    first = await pay.dispatch({"a": 1, "b": [1, 2]})
    same = await pay.dispatch({"b": [1, 2], "a": 1})
    other = await pay.dispatch({"a": 1, "b": [2, 1]})

    assert same.id == first.id
    assert other.id != first.id


async def test_a_path_uses_one_value_of_the_input(app: Forge) -> None:
    @app.job(idempotent="input.order.id")
    async def pay(ctx: JobContext, input: dict) -> None: ...

    first = await pay.dispatch({"order": {"id": 7}, "n": 1})
    same = await pay.dispatch({"order": {"id": 7}, "n": 2})
    other = await pay.dispatch({"order": {"id": 8}, "n": 1})

    assert same.id == first.id != other.id
    with pytest.raises(InvalidValue, match=r"pay needs input\.order\.id"):
        await pay.dispatch({"order": {}})


async def test_a_function_of_the_input_makes_the_key(app: Forge) -> None:
    @app.job(idempotent=lambda payment: payment.payment_id.lower())
    async def pay(ctx: JobContext, input: Payment) -> None: ...

    first = await pay.dispatch(Payment(payment_id="P1"))
    same = await pay.dispatch(Payment(payment_id="p1"))

    assert same.id == first.id


async def test_a_key_function_receives_the_validated_input_also_for_a_dict(
    app: Forge,
) -> None:
    @app.job(idempotent=lambda payment: payment.payment_id)
    async def pay(ctx: JobContext, input: Payment) -> None: ...

    first = await pay.dispatch(Payment(payment_id="p1"))
    same = await pay.dispatch({"payment_id": "p1"})

    assert same.id == first.id


async def test_a_key_function_that_returns_none_makes_no_key(app: Forge, psql: Any) -> None:
    @app.job(idempotent=lambda input: input.get("payment"))
    async def pay(ctx: JobContext, input: dict[str, Any]) -> None: ...

    with pytest.raises(InvalidValue, match="returned None; return a value"):
        await pay.dispatch({"paymnt": "p-1"})
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_two_types_can_use_the_same_value(app: Forge) -> None:
    @app.job(idempotent="input.id")
    async def pay(ctx: JobContext, input: dict) -> None: ...

    @app.job(idempotent="input.id")
    async def refund(ctx: JobContext, input: dict) -> None: ...

    assert (await pay.dispatch({"id": 1})).id != (await refund.dispatch({"id": 1})).id


async def test_an_explicit_key_overrides_that_of_the_type(app: Forge) -> None:
    @app.job(idempotent="input.id")
    async def pay(ctx: JobContext, input: dict) -> None: ...

    first = await pay.dispatch({"id": 1}, idempotency_key="mine")
    second = await pay.dispatch({"id": 2}, idempotency_key="mine")
    third = await pay.dispatch({"id": 1})

    assert first.id == second.id != third.id


async def test_keys_are_unique_per_tenant_and_without_a_tenant(app: Forge) -> None:
    @app.job
    async def pay(ctx: JobContext, input: dict) -> None: ...

    tenants: list[Any] = [{}, {"tenant_id": 1}, {"tenant_id": 2}]
    first = [await pay.dispatch(idempotency_key="k", **tenant) for tenant in tenants]
    second = [await pay.dispatch(idempotency_key="k", **tenant) for tenant in tenants]

    assert len({handle.id for handle in first}) == 3
    assert [handle.id for handle in second] == [handle.id for handle in first]


@pytest.mark.parametrize("tenant", [{}, {"tenant_id": 9}])
async def test_twenty_concurrent_dispatches_of_one_key_create_one_job(
    app: Forge, psql: Any, tenant: dict[str, Any]
) -> None:
    @app.job
    async def pay(ctx: JobContext, input: dict) -> None: ...

    handles = await asyncio.gather(
        *(pay.dispatch({"n": n}, idempotency_key="k", **tenant) for n in range(20))
    )

    assert len({handle.id for handle in handles}) == 1
    assert [handle.deduplicated for handle in handles].count(False) == 1
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_a_second_dispatch_waits_for_an_uncommitted_first(app: Forge, psql: Any) -> None:
    @app.job
    async def pay(ctx: JobContext, input: dict) -> None: ...

    undone = psql.transaction()
    await undone.start()
    lost = await pay.dispatch(conn=psql, idempotency_key="k")
    waiting = asyncio.create_task(pay.dispatch(idempotency_key="k"))
    await until(lambda: psql.fetchval(BLOCKED), 10, "the second one waits")
    await undone.rollback()
    made = await asyncio.wait_for(waiting, 10)

    assert not made.deduplicated
    assert made.id != lost.id
    assert await psql.fetchval("select id from forge_jobs") == made.id


async def test_of_many_inputs_with_one_key_the_first_is_dispatched(app: Forge, psql: Any) -> None:
    @app.job(idempotent="input.id")
    async def pay(ctx: JobContext, input: dict) -> None: ...

    await pay.dispatch({"id": 1, "from": "before"})
    count = await app.dispatch_many(pay, [{"id": n % 3, "from": f"many {n}"} for n in range(9)])

    assert count == 2
    found = await psql.fetch("select input ->> 'from' as came from forge_jobs order by 1")
    assert [row["came"] for row in found] == ["before", "many 0", "many 2"]


async def test_inputs_with_one_key_across_chunks_are_one_job(app: Forge, psql: Any) -> None:
    @app.job(idempotent=True)
    async def pay(ctx: JobContext, input: dict) -> None: ...

    assert await app.dispatch_many(pay, ({"n": n % 700} for n in range(2500))) == 700
    assert await psql.fetchval("select count(*) from forge_jobs") == 700


async def test_one_explicit_key_is_rejected_for_many_inputs(app: Forge) -> None:
    @app.job
    async def pay(ctx: JobContext, input: dict) -> None: ...

    with pytest.raises(InvalidValue, match=r"idempotent="):
        await app.dispatch_many(pay, [{}], idempotency_key="k")


async def test_a_type_known_by_name_only_makes_the_same_keys(make_app: MakeApp, work: Work) -> None:
    app = make_app()

    @app.job(idempotent="input.id")
    async def pay(ctx: JobContext, input: dict) -> None: ...

    @app.job(idempotent=True)
    async def pay_all(ctx: JobContext, input: dict) -> None: ...

    await work(app)
    elsewhere = make_app()
    for name, given in (("pay", {"id": 4}), ("pay_all", {"b": 1, "a": 2})):
        here = await app.dispatch(name, given)
        there = await elsewhere.dispatch(name, dict(reversed(given.items())))
        assert there.deduplicated
        assert there.id == here.id


@pytest.mark.parametrize("key", ["", "  ", "x" * 256, "a\0b", 7, "\ud800"])
async def test_an_invalid_key_is_rejected(app: Forge, psql: Any, key: Any) -> None:
    @app.job
    async def pay(ctx: JobContext, input: dict) -> None: ...

    with pytest.raises(InvalidValue, match="idempotency_key"):
        await pay.dispatch(idempotency_key=key)
    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 0


@pytest.mark.parametrize("idempotent", ["payment_id", "output.x", 3, ""])
def test_an_invalid_key_definition_is_rejected(app: Forge, idempotent: Any) -> None:
    with pytest.raises(InvalidValue, match="idempotent must be True, False, a path"):

        @app.job(idempotent=idempotent)
        async def pay(ctx: Any) -> None: ...


async def test_a_key_function_requires_an_explicit_key_without_its_code(
    app: Forge, work: Work, database_url: str, psql: Any
) -> None:
    @app.job(idempotent=lambda input: str(input["payment"]))
    async def pay(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await work(app)

    async with Forge(database_url=database_url) as elsewhere:
        with pytest.raises(InvalidValue, match="pass idempotency_key"):
            await elsewhere.dispatch("pay", {"payment": 1})
        await elsewhere.dispatch("pay", {"payment": 1}, idempotency_key="pay:1")
    with pytest.raises(asyncpg.InvalidParameterValueError, match="only its own code has"):
        await psql.fetchval("select forge_dispatch('pay', '{}')")
