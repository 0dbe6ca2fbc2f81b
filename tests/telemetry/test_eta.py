"""The position of a waiting job, and when it may start."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forge import Forge, JobContext
from forge.core.eta import MIN_STARTS, RECENT_SECONDS, STEPS, estimate
from forge.http.jobs import eta
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.http.conftest import MakeServerApp, MakeToken


def test_a_steady_lane_starts_jobs_within_the_bounds() -> None:
    one_a_second = [float(n) for n in range(1, 101)]

    found = estimate(60, 0.0, one_a_second)

    assert found is not None
    assert found.high is not None
    assert 40 < found.low < 60 < found.high < 90


def test_fewer_starts_widen_the_bounds() -> None:
    many = estimate(60, 0.0, [float(n) for n in range(1, 201)])
    few = estimate(60, 0.0, [float(n) for n in range(1, 6)])

    assert many is not None
    assert few is not None
    assert few.low < many.low
    assert few.high > many.high  # type: ignore[operator]


def test_a_line_that_stands_still_gets_slower_with_time() -> None:
    just_now = estimate(10, 0.0, [1.0, 2.0, 3.0, 4.0])
    a_minute_later = estimate(10, 0.0, [61.0, 62.0, 63.0, 64.0])

    assert a_minute_later.low > just_now.low  # type: ignore[union-attr]


def test_without_recent_starts_there_is_no_estimate() -> None:
    assert estimate(5, 0.0, []) is None
    assert estimate(5, 0.0, [RECENT_SECONDS + 1] * 100) is None
    assert estimate(5, 0.0, [1.0] * (MIN_STARTS - 1)) is None


@given(
    ahead=st.integers(0, 10_000),
    due_in=st.floats(-1e6, 1e6),
    starts=st.lists(st.floats(0, 2 * RECENT_SECONDS), max_size=200),
    is_capped=st.booleans(),
)
def test_bounds_are_in_order_and_never_before_the_job_is_due(
    ahead: int, due_in: float, starts: list[float], is_capped: bool
) -> None:
    found = estimate(ahead, due_in, starts, is_capped=is_capped)

    assume(found is not None)
    assert found.low >= max(due_in, 0)
    assert found.high is None or found.high >= found.low
    assert (found.high is None) == is_capped


async def test_a_waiting_job_has_a_position_and_an_estimate(
    make_app: MakeApp, make_server_app: MakeServerApp, token: MakeToken, work: Work
) -> None:
    app = make_app(max_concurrent=2, batch_size=1)
    pace = asyncio.Semaphore(0)

    @app.job
    async def step(ctx: JobContext, input: int) -> None:
        await pace.acquire()

    transport = httpx.ASGITransport(make_server_app(app))
    handles = [await app.dispatch(step, n) for n in range(30)]
    mine = await app.dispatch(step, 30, tenant_id=7)
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:

        async def eta_of(job_id: UUID, tenant: int | None = None) -> dict[str, Any]:
            headers = token("user", tenant=tenant)
            answer = await client.get(f"/_api/jobs/{job_id}/eta", headers=headers)
            return answer.json()  # type: ignore[no-any-return]

        before = await eta_of(handles[-1].id)
        await work(app)
        for _ in range(10):
            pace.release()
        await until(lambda: _is_done(app, handles[9].id), 30, "ten are done")
        after = await eta_of(handles[-1].id)
        to_a_tenant = await eta_of(mine.id, tenant=7)
        for _ in range(21):
            pace.release()
        await handles[-1].result(30)
        over = await eta_of(handles[-1].id)

    assert before["position"] == {"count": 30, "precision": "exact"}
    assert before["eta_seconds"] is None
    assert after["position"]["count"] in range(17, 21)
    assert 0 < after["eta_seconds"]["low"] <= after["eta_seconds"]["high"]
    assert set(to_a_tenant["eta_seconds"].values()) <= {*STEPS, None}
    assert (over["status"], over["position"], over["eta_seconds"]) == ("completed", None, None)


async def test_past_the_cap_there_is_no_upper_bound(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eta, "MAX_POSITION", 5)

    @app.job
    async def step(ctx: JobContext, input: int) -> None: ...

    handles = [await app.dispatch(step, n) for n in range(10)]

    answer = await http.get(f"/_api/jobs/{handles[-1].id}/eta", headers=token("user"))

    assert answer.json()["position"] == {"count": 6, "precision": "at_least"}


async def test_another_tenants_job_is_not_found(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job
    async def step(ctx: JobContext) -> None: ...

    handle = await app.dispatch(step, tenant_id=1)

    ours = await http.get(f"/_api/jobs/{handle.id}/eta", headers=token("user", tenant=1))
    theirs = await http.get(f"/_api/jobs/{handle.id}/eta", headers=token("user", tenant=2))
    none = await http.get(f"/_api/jobs/{uuid4()}/eta", headers=token("user"))

    assert (ours.status_code, theirs.status_code, none.status_code) == (200, 404, 404)


async def _is_done(app: Forge, job_id: UUID) -> bool:
    return (await app.get(job_id)).status.is_final
