"""A tenant cannot learn the volume of other tenants."""

from typing import Any

import httpx

from forge import Forge, JobContext
from tests.http.conftest import MakeToken
from tests.store.placing import Psql

LETTERS = """insert into forge_dead_letters
    (job_id, job_type, queue, priority, tenant_id, payload, payload_version, attempt_count,
     original_created_at, original_scheduled_at)
select gen_random_uuid(), 'mail', 'default', 50, $2, '{}', '1.0', 1, now(), now()
from generate_series(1, $1::int)
returning dlq_id"""
EVENTS = """insert into forge_audit_events (event, tenant_id)
select 'x', $2 from generate_series(1, $1::int)
returning id"""


NOW = "select ((extract(epoch from clock_timestamp()) - 1577836800) * 1000000)::bigint"


async def test_ids_reveal_the_time_but_not_the_volume(psql: "Psql[Any]") -> None:
    for insert in (LETTERS, EVENTS):
        for others in (0, 3, 500):
            await psql.fetch(insert, others, 8)
            before = await psql.fetchval(NOW)
            mine = await psql.fetchval(insert, 1, 7)
            after = await psql.fetchval(NOW)

            assert before <= mine // 4 <= after


async def test_ids_are_exact_as_floating_point_and_grow_with_time(psql: "Psql[Any]") -> None:
    ids = [row["dlq_id"] for row in await psql.fetch(LETTERS, 1_000, 7)]
    later = [row["dlq_id"] for row in await psql.fetch(LETTERS, 1_000, 7)]

    assert len({*ids, *later}) == 2_000
    assert max(ids) < min(later) <= max(later) < 2**53
    assert sorted(ids) == ids


async def test_a_tenant_gets_a_coarse_queue_position(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job
    async def step(ctx: JobContext, input: int) -> None: ...

    async def place(tenant: int | None) -> Any:
        answer = await http.get(f"/_api/jobs/{mine.id}/eta", headers=token("user", tenant=tenant))
        return answer.json()["position"]

    for others, coarse in ((3, 10), (5, 10), (4, 100)):
        for n in range(others):
            await app.dispatch(step, n, tenant_id=8)
        mine = await app.dispatch(step, 0, tenant_id=7)
        assert await place(7) == {"count": coarse, "precision": "at_most"}

    assert await place(None) == {"count": 15, "precision": "exact"}
