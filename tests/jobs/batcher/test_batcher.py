"""Concurrent dispatches share a statement and a commit, and nothing else."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import Forge, InvalidPayload, JobContext, JobHandle
from forge.core.errors import DatabaseUnavailable, ForgeError, StatementRefused
from forge.jobs import admission, batcher
from forge.jobs.batcher import DispatchBatcher
from forge.jobs.prepare import prepare
from forge.store.jobs import Dispatched
from forge.store.statement import Statement
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.http.conftest import AUTH, MakeServerApp, MakeToken, api_url, make_server_app, token
from tests.jobs.batcher import checks
from tests.jobs.batcher.conftest import TIMEOUT, Stage, ended

__all__ = ["api_url", "make_server_app", "token"]

NAMES = checks.NAMES
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER_TRACE = "00-11111111111111111111111111111111-2222222222222222-01"


@pytest.fixture
async def secured_stage(make_app: MakeApp, api_url: str, psql: Any) -> Stage:
    """A stage whose app logs in as forge_api."""
    app = make_app(auth=AUTH)
    app.database_url = api_url
    return Stage(app, psql)


async def test_each_call_returns_after_its_own_commit(stage: Stage) -> None:
    await checks.each_call_returns_after_its_own_commit(stage)


async def test_one_refused_call_fails_alone(stage: Stage) -> None:
    await checks.one_refused_call_fails_alone(stage)


async def test_each_insert_runs_as_the_tenant_of_its_jobs(secured_stage: Stage) -> None:
    await checks.each_insert_runs_as_the_tenant_of_its_jobs(secured_stage)


async def test_every_waiting_call_is_served(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher, "MAX_ROWS", 4)

    await checks.every_waiting_call_is_served(stage)

    assert max(stage.inserts) == 4


async def test_workers_are_woken_after_a_shared_insert(stage: Stage) -> None:
    await checks.workers_are_woken_after_a_shared_insert(stage)


async def test_calls_that_arrive_during_an_insert_share_the_next_one(stage: Stage) -> None:
    await ended(await stage.dispatch_together(NAMES))

    # Two inserts, each with half of the calls.
    assert stage.inserts[:2] == [1, 1]
    assert sum(stage.inserts[2:]) == len(NAMES)
    assert len(stage.inserts) == 4


async def test_a_lone_call_takes_one_statement_and_waits_for_no_other(stage: Stage) -> None:
    for name in NAMES[:5]:
        await stage.dispatch(name)

    assert stage.inserts == [1] * 5


async def test_callers_return_in_turns_of_shared_inserts(stage: Stage) -> None:
    async def repeat(caller: int) -> None:
        for turn in range(20):
            await stage.app.dispatch("greet", {"name": f"{caller} {turn}"})

    await asyncio.gather(*(repeat(caller) for caller in range(20)))

    assert sum(stage.inserts) == 400
    assert len(stage.inserts) < 200
    # The first caller to return is not sent alone: the others would wait for its insert.
    assert stage.inserts.count(1) < len(stage.inserts) / 3
    assert len(await stage.names()) == 400


async def test_an_insert_has_limits_in_rows_and_bytes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "MAX_BYTES", 2000)
    long = ["x" * 400 + str(number) for number in range(6)]

    await ended(await stage.dispatch_together([*long, "y" * 2000]))

    assert sum(stage.inserts) == 9
    assert max(stage.inserts) == 2


async def test_callers_wait_before_their_input_is_encoded_while_too_many_wait(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING", 5)
    queue = await stage.batcher

    async with stage.stalled():
        calls = await stage.start(NAMES[:5])
        more = [stage.dispatch(f"more {number}") for number in range(50)]
        bad = asyncio.create_task(stage.app.dispatch("greet", "not an object"))
        # Each of them has run as far as it can.
        for _ in range(3):
            await asyncio.sleep(0)

        assert queue.admission.is_full
        assert queue.admission.waiting == 5
        assert not bad.done()

    results = await ended([*calls, *more])
    assert all(isinstance(result, JobHandle) for result in results)
    with pytest.raises(InvalidPayload):
        await bad


async def test_a_full_batcher_counts_bytes_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING_BYTES", 2000)
    queue = await stage.batcher

    async with stage.stalled():
        calls = await stage.start(["x" * 600, "y" * 600])
        late = stage.dispatch("late")
        for _ in range(3):
            await asyncio.sleep(0)

        assert queue.admission.waiting == 2

    assert all(isinstance(result, JobHandle) for result in await ended([*calls, late]))
    assert queue.admission.waiting_bytes == 0


async def test_calls_are_served_in_their_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "MAX_ROWS", 3)
    monkeypatch.setattr(batcher, "MAX_INSERTS", 1)
    order: list[str] = []

    async def call(name: str) -> None:
        await stage.app.dispatch("greet", {"name": name})
        order.append(name)

    async with stage.stalled():
        first = stage.dispatch("first")
        await stage.until_blocked(1)
        calls = [asyncio.create_task(call(name)) for name in NAMES]
        queue = await stage.batcher
        await until(lambda: queue.admission.waiting == len(NAMES), TIMEOUT, "the calls wait")
    await ended([first, *calls])

    assert order == NAMES


async def test_callers_that_wait_for_room_enter_in_their_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING", 4)
    monkeypatch.setattr(batcher, "MAX_ROWS", 2)
    monkeypatch.setattr(batcher, "MAX_INSERTS", 1)
    await stage.batcher
    names = [f"{number:02}" for number in range(40)]
    order: list[str] = []

    async def call(name: str) -> None:
        await stage.app.dispatch("greet", {"name": name})
        order.append(name)
        # A caller that returns calls again, behind all that wait.
        if len(order) < 20:
            calls.append(asyncio.create_task(call(f"again {len(order):02}")))

    async with stage.stalled():
        calls = [asyncio.create_task(call(name)) for name in names]
        await stage.until_blocked(1)
    while not all(task.done() for task in calls):
        await ended(calls)

    assert order == [*names, *(f"again {number:02}" for number in range(1, 20))]


async def test_a_cancelled_caller_in_line_gives_its_turn_to_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING", 2)
    monkeypatch.setattr(batcher, "MAX_ROWS", 1)

    async with stage.stalled():
        calls = await stage.start(NAMES[:2])
        in_line = [stage.dispatch(name) for name in NAMES[2:]]
        await asyncio.sleep(0)
        for call in in_line[::2]:
            call.cancel()
    results = await ended([*calls, *in_line])

    assert sum(isinstance(result, asyncio.CancelledError) for result in results) == 8
    assert await stage.names() == {"first", "second", *NAMES[:2], *NAMES[3::2]}


async def test_a_lone_call_does_not_overtake_tenants_that_wait(secured_stage: Stage) -> None:
    """Two callers of changing tenants keep both inserts busy; the third tenant has its turn."""
    queue = DispatchBatcher(secured_stage.run, lambda jobs=1, *, is_request=False: None, 3)
    encoder = await secured_stage.app.catalog.find("greet")
    done: list[int] = []

    async def call(tenant: int) -> None:
        await queue.insert(prepare(encoder, {"name": ""}, {"tenant_id": tenant}), tenant)
        done.append(tenant)

    async def keep_calling(first: int) -> None:
        for tenant in range(first, first + 200, 2):
            await call(tenant)

    busy = [asyncio.create_task(keep_calling(first)) for first in (1000, 1001)]
    await until(lambda: len(done) > 2, TIMEOUT, "both callers call")
    before = len(done)
    await ended([asyncio.create_task(call(7)) for _ in range(3)])
    after = len(done)
    await ended(busy)

    assert after - before < 40


async def test_jobs_that_share_no_insert_leave_connections_to_the_others(
    stage: Stage, database_url: str
) -> None:
    """As many calls as there are connections wait for keys that another transaction holds."""
    database = await (await stage.app.session()).database()
    keys = [f"key {number}" for number in range(database.pool_size + 5)]
    async with stage.psql.transaction():
        for key in keys:
            await stage.app.dispatch("greet", {"name": key}, idempotency_key=key, conn=stage.psql)
        keyed = [stage.dispatch(key, idempotency_key=key) for key in keys]
        await stage.until_waiting_for_keys(5)
        others = await ended([stage.dispatch(name) for name in NAMES])

        assert all(isinstance(result, JobHandle) for result in others)
        assert not any(call.done() for call in keyed)

    assert all(handle.deduplicated for handle in await ended(keyed))


async def test_many_refused_calls_fail_alone(stage: Stage) -> None:
    await stage.psql.execute(
        "alter table forge_jobs add constraint polite check (input ->> 'name' not like 'rude%')"
    )
    rude = [f"rude {number}" for number in range(7)]
    names = [name for pair in zip(NAMES, rude, strict=False) for name in pair]

    _, _, *results = await ended(await stage.dispatch_together(names))

    refused = [name for name, r in zip(names, results, strict=True) if not isinstance(r, JobHandle)]
    assert refused == rude
    assert all(isinstance(r, StatementRefused) for r in results if not isinstance(r, JobHandle))
    assert await stage.names() == {"first", "second", *NAMES[:7]}


async def test_an_outage_after_a_refusal_fails_only_what_was_not_committed(stage: Stage) -> None:
    """The first half of the batch is committed; then the database is away."""
    sent: list[int] = []

    async def run(statement: Statement[Any], tenant: int | None) -> Any:
        ids = statement.args[0]
        sent.append(len(ids) if isinstance(ids, list) else 1)
        if len(sent) > 3:
            raise DatabaseUnavailable("away")
        return await stage.run(statement, tenant)

    await stage.psql.execute(
        "alter table forge_jobs add constraint polite check (input ->> 'name' <> 'rude')"
    )
    queue = DispatchBatcher(run, lambda jobs=1, *, is_request=False: None, 10)
    encoder = await stage.app.catalog.find("greet")
    names = ["lone", "a", "b", "c", "d", "e", "rude"]

    async with stage.stalled():
        calls = [
            asyncio.create_task(queue.insert(prepare(encoder, {"name": name}, {})))
            for name in names
        ]
        await until(lambda: len(sent) == 2, TIMEOUT, "the lone insert and the batch are sent")
    results = dict(zip(names, await ended(calls), strict=True))

    committed = {name for name, result in results.items() if isinstance(result, Dispatched)}
    assert committed == await stage.names()
    assert "lone" in committed
    assert {type(results[name]) for name in set(names) - committed} == {DatabaseUnavailable}


async def test_a_refusal_that_concerns_every_row_is_answered_at_once(
    secured_stage: Stage,
) -> None:
    await secured_stage.app.dispatch("greet", {"name": "before"})
    async with secured_stage.psql.transaction():
        await secured_stage.psql.execute("lock table forge_jobs in share mode")
        calls = await secured_stage.start(NAMES)
        await secured_stage.psql.execute("revoke insert on forge_jobs from forge_api")
        columns = "id, job_type, queue, input, priority, max_attempts, tenant_id"
        await secured_stage.psql.execute(f"revoke insert ({columns}) on forge_jobs from forge_api")

    results = await ended(calls)

    assert all(isinstance(result, StatementRefused) for result in results[2:])
    # One for each half of what waited, not one per job.
    assert secured_stage.refused <= 4


async def test_payload_rules_and_sensitive_content_are_checked_per_call(stage: Stage) -> None:
    @stage.app.job(category="notifications", requires=("order_id",))
    async def notify(ctx: JobContext, input: dict[str, Any]) -> None: ...

    good = {
        "tenant_id": 7,
        "correlation_id": str(uuid4()),
        "idempotency_key": "order 1",
        "order_id": 1,
    }
    bad = [
        {**good, "idempotency_key": "order 2", "password": "hunter2"},
        {key: value for key, value in good.items() if key != "order_id"},
    ]

    async with stage.stalled():
        first, second, *plain = await stage.start(NAMES)
        ruled = [asyncio.create_task(stage.app.dispatch("notify", value)) for value in (good, *bad)]
    results = await ended(ruled)
    others = await ended([first, second, *plain])

    assert isinstance(results[0], JobHandle)
    assert [type(result) for result in results[1:]] == [InvalidPayload, InvalidPayload]
    assert "password" in str(results[1])
    assert "order_id" in str(results[2])
    assert all(isinstance(result, JobHandle) for result in others)


async def test_a_cancelled_caller_leaves_the_others_alone(stage: Stage) -> None:
    async with stage.stalled():
        first, second, *calls = await stage.start(NAMES)
        calls[3].cancel()  # it waits: its job is not inserted
    results = await ended([first, second, *calls])

    assert isinstance(results[5], asyncio.CancelledError)
    assert all(isinstance(result, JobHandle) for n, result in enumerate(results) if n != 5)
    assert await stage.names() == {"first", "second", *NAMES} - {NAMES[3]}


async def test_a_caller_cancelled_during_its_insert_leaves_the_others_alone(stage: Stage) -> None:
    queue = await stage.batcher
    async with stage.stalled():
        first = stage.dispatch("first")
        await stage.until_blocked(1)
        calls = [stage.dispatch(name) for name in NAMES]
        await stage.until_blocked(2)
        assert queue.admission.waiting == len(NAMES) // 2 - 1
        calls[3].cancel()  # its insert is in progress
    results = await ended([first, *calls])

    assert [n for n, result in enumerate(results) if not isinstance(result, JobHandle)] == [4]
    assert await stage.names() >= {"first", *NAMES} - {NAMES[3]}


async def test_options_and_checks_apply_per_call(stage: Stage) -> None:
    first, second = uuid4(), uuid4()

    async with stage.stalled():
        await stage.start([])
        calls: list[asyncio.Task[Any]] = [
            stage.dispatch(
                "ann",
                tenant_id=1,
                auth={"name": "ann"},
                correlation_id=first,
                traceparent=TRACE,
            ),
            stage.dispatch(
                "ben",
                tenant_id=2,
                auth={"name": "ben"},
                correlation_id=second,
                traceparent=OTHER_TRACE,
            ),
            stage.dispatch("cid", priority="high", delay="1h", queue="slow"),
            asyncio.create_task(stage.app.dispatch("greet", "no object")),
            stage.dispatch("dan", prioritty="high"),
        ]
        queue = await stage.batcher
        await until(lambda: queue.admission.waiting == 3, TIMEOUT, "the valid calls wait")
    ann, ben, cid, no_object, misspelt = await ended(calls)

    assert stage.inserts[2:] in ([3], [2, 1], [1, 2])
    rows = [await stage.app.get(handle.id) for handle in (ann, ben, cid)]
    assert [row.tenant_id for row in rows] == [1, 2, None]
    assert [row.auth and row.auth["name"] for row in rows] == ["ann", "ben", None]
    assert [row.correlation_id for row in rows] == [first, second, None]
    assert [row.traceparent for row in rows] == [TRACE, OTHER_TRACE, None]
    assert [(row.priority, row.queue) for row in rows[1:]] == [(50, "default"), (75, "slow")]
    assert rows[2].scheduled_at > rows[1].scheduled_at
    assert isinstance(no_object, InvalidPayload)
    assert "prioritty" in str(misspelt)


async def test_a_key_that_another_transaction_holds_delays_only_its_own_call(
    stage: Stage, database_url: str
) -> None:
    async with stage.psql.transaction():
        await stage.app.dispatch("greet", {"name": "a"}, idempotency_key="k", conn=stage.psql)
        keyed = stage.dispatch("b", idempotency_key="k")
        others = await ended([stage.dispatch(name) for name in NAMES])

        assert all(isinstance(result, JobHandle) for result in others)
        assert not keyed.done()

    assert (await asyncio.wait_for(keyed, TIMEOUT)).deduplicated


async def test_a_concurrent_dispatch_of_one_key_creates_one_job(stage: Stage) -> None:
    handles = await ended([stage.dispatch("x", idempotency_key="k") for _ in range(20)])

    assert len({handle.id for handle in handles}) == 1
    assert sum(not handle.deduplicated for handle in handles) == 1


async def test_a_closed_app_rejects_what_still_waits(stage: Stage) -> None:
    async with stage.stalled():
        calls = await stage.start(NAMES)
        closing = asyncio.create_task(stage.app.close())
        results = await ended(calls[2:])
    await closing

    assert {str(result) for result in results} == {"the app was closed; open it again"}
    assert all(isinstance(result, JobHandle) for result in await ended(calls[:2]))


async def test_a_closed_app_rejects_callers_that_wait_for_room(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING", 5)
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    queue = await stage.batcher

    async with stage.stalled():
        calls = await stage.start(NAMES[:5])
        in_line = [stage.dispatch(f"late {number}") for number in range(20)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(stage.app.close())
        results = await ended([*calls[2:], *in_line])
    await closing
    await ended(calls[:2])

    assert {str(result) for result in results} == {"the app was closed; open it again"}
    assert (queue.admission.waiting, queue.admission.waiting_bytes) == (0, 0)
    with pytest.raises(DatabaseUnavailable):
        await queue.insert(prepare(await stage.app.catalog.find("greet"), {}, {}))
    assert problems == []


def test_a_loop_that_ends_cancels_waiting_calls_quietly(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Forge(database_url=database_url)

    @app.job
    async def greet(ctx: JobContext) -> None: ...

    async def leave() -> None:
        calls = [asyncio.create_task(app.dispatch("greet")) for _ in range(5)]
        await asyncio.sleep(0)
        del calls

    asyncio.run(leave())

    assert caplog.records == []


def test_threads_share_inserts_through_the_sync_app(database_url: str) -> None:
    app = Forge(database_url=database_url)
    inserts: list[int] = []

    @app.job
    async def greet(ctx: JobContext, input: dict[str, Any]) -> None: ...

    def observe(statement: Any, _: float, error: ForgeError | None) -> None:
        if "insert into forge_jobs" in statement.sql:
            inserts.append(len(statement.args[0]) if isinstance(statement.args[0], list) else 1)

    app.observers.append(observe)
    with ThreadPoolExecutor(20) as threads:
        handles = list(threads.map(lambda n: app.sync.dispatch("greet", {"name": n}), range(400)))
    app.sync.close()

    assert len({handle.id for handle in handles}) == 400
    assert sum(inserts) == 400
    assert len(inserts) < 400


async def test_http_requests_and_requests_to_cancel_use_the_same_batcher(
    stage: Stage, make_server_app: MakeServerApp, token: MakeToken
) -> None:
    job = await stage.app.dispatch("greet", {"name": "x"}, delay="1h")
    server = make_server_app(stage.app)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(server), base_url="http://test"
    ) as http:

        def post(path: str, **request: Any) -> "asyncio.Task[httpx.Response]":
            return asyncio.create_task(http.post(f"/_api/jobs/{path}", **request))

        async with stage.stalled():
            calls = [
                post("greet/dispatch", json={"args": {"name": name}}, headers=headers)
                for headers, names in (
                    (token("user", tenant=7), NAMES),
                    (token("user"), ["operator 1", "operator 2"]),
                )
                for name in names
            ]
            # For the tenant and for the operator: the first call, and the others together.
            await stage.until_blocked(4)
            calls += [post(f"{job.id}/cancel", headers=token("user")) for _ in range(3)]
            queue = await (await server.state.forge.session()).open_batcher()
            tenants = (len(NAMES) - 1) // 2
            await until(
                lambda: queue.admission.waiting == tenants + 3,
                TIMEOUT,
                "the requests to cancel wait",
            )
        responses = await ended(calls)

    assert [response.status_code for response in responses] == [202] * len(responses)
    # The delayed job, two by the operator, the first and the others of the tenant, three to cancel.
    assert sum(stage.inserts) == 1 + len(responses)
    assert len(stage.inserts) < len(responses) / 2


async def test_dispatches_of_handlers_share_inserts(stage: Stage, work: Work) -> None:
    done = asyncio.Event()

    @stage.app.job
    async def fan_out(ctx: JobContext) -> None:
        await asyncio.gather(
            *(stage.app.dispatch("greet", {"name": f"{n}"}, delay="1h") for n in range(50))
        )
        done.set()

    await work(stage.app)
    await stage.app.dispatch(fan_out)
    await asyncio.wait_for(done.wait(), TIMEOUT)

    assert max(stage.inserts) > 10
