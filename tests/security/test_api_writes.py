"""What forge_api may write is in the name of the caller that its session acts for."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from forge import Forge, JobFailed
from forge.store.connection.database import Database
from forge.store.connection.tenant import Callers
from tests.apps import working
from tests.security.callers import ANN, SECRET, register, session
from tests.store.row_security.conftest import as_role, filled

__all__ = ["filled"]
Refused = asyncpg.InsufficientPrivilegeError
CEO = '{"name": "ceo", "roles": ["staff", "manager"], "tenant_id": null}'
OWN = '{"name": "ann", "roles": ["user"], "tenant_id": 1}'
JOB = "insert into forge_jobs (job_type, tenant_id, {}) values ('plain', 1, {})"
CANCEL = (
    "insert into forge_jobs (job_type, queue, tenant_id, auth, input) values "
    "('forge.cancel', 'forge', {}, {}, jsonb_build_object('job_id', $1::uuid))"
)


@pytest.fixture(params=["plain", "signed"])
async def ann(
    request: pytest.FixtureRequest, filled: dict[int | None, UUID], database: Database, psql: Any
) -> AsyncIterator[Any]:
    """A session of forge_api that acts for ann of tenant 1, as a mutation that she calls does."""
    callers = Callers()
    if request.param == "signed":
        await register(database, SECRET)
        callers = database.callers
    await psql.execute("insert into forge_job_types (name, max_attempts) values ('plain', 5)")
    async with session(database.url, callers.bound(1, ANN)) as conn:
        yield conn


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (JOB.format("auth", f"'{CEO}'"), "the auth of another caller"),
        (JOB.format("auth", "'{}'"), "the auth of another caller"),
        (JOB.format("queue", "'forge'"), "queue forge is only for"),
        (JOB.format("max_attempts", "6"), "at most 5 attempts"),
        (JOB.format("max_attempts", "2147483647"), "at most 5 attempts"),
        (
            "insert into forge_jobs (job_type, tenant_id, max_attempts) values ('unknown', 1, 4)",
            "at most 3 attempts",
        ),
        (
            "insert into forge_jobs (job_type, tenant_id, queue, auth, max_attempts) "
            f"values ('forge.cancel', 1, 'forge', '{OWN}', 21)",
            "at most 20 attempts",
        ),
        (
            "insert into forge_jobs (job_type, tenant_id) values ('plain', 2)",
            "row-level security",
        ),
        ("insert into forge_jobs (job_type) values ('plain')", "row-level security"),
        (
            "insert into forge_jobs (job_type, queue, tenant_id) "
            "values ('forge.cancel', 'forge', 1)",
            "the auth of another caller",
        ),
        (
            "insert into forge_jobs (job_type, tenant_id, auth) "
            f"values ('forge.cancel', 1, '{OWN}')",
            "queue forge is only for",
        ),
        ("insert into forge_pauses (type, reason) values ('x', 'y')", "row-level security"),
        ("select forge_set_drained(null, true, 'ann', null)", "only operators drain"),
        (
            "insert into forge_audit_events (event, actor, tenant_id) values ('x', 'ceo', 1)",
            "'ann', and cannot write in the name of 'ceo'",
        ),
        (
            "insert into forge_audit_events (event, tenant_id) values ('x', 1)",
            "'ann', and cannot write in the name of null",
        ),
        (
            "insert into forge_audit_events (event, actor, tenant_id) values ('x', 'ann', 2)",
            "row-level security",
        ),
        (
            "insert into forge_audit_events (event, actor, tenant_id, created_at) "
            "values ('x', 'ann', 1, '2001-01-01')",
            "permission denied",
        ),
        ("insert into forge_outbox (job_id) select id from forge_jobs", "permission denied"),
        (
            "update forge_dead_letters set status = 'discarded', reviewed_by = 'ceo'",
            "'ann', and cannot write in the name of 'ceo'",
        ),
        (
            "insert into forge_schedules (type, tenant_id) values ('tick', 2)",
            "row-level security",
        ),
        ("update forge_schedules set type = 'other'", "permission denied"),
    ],
)
async def test_a_caller_writes_in_no_other_name(ann: Any, statement: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        await ann.execute(statement)


async def test_a_caller_writes_in_its_own_name(ann: Any, filled: Any, psql: Any) -> None:
    await ann.execute(JOB.format("auth, max_attempts", f"'{OWN}', 5"))
    await ann.execute(JOB.format("auth", "null"))
    await ann.execute(CANCEL.format("1", f"'{OWN}'"), filled[1])
    await ann.execute(
        "insert into forge_audit_events (event, actor, tenant_id) values ('x', 'ann', 1)"
    )
    await ann.execute(
        "update forge_dead_letters set status = 'discarded', reviewed_by = 'ann', notes = 'x'"
    )

    assert await psql.fetchval("select count(*) from forge_jobs where tenant_id = 1") == 4
    reviewed = "select tenant_id from forge_dead_letters where reviewed_by = 'ann'"
    assert [row[0] for row in await psql.fetch(reviewed)] == [1]


@pytest.mark.parametrize(
    ("tenant", "auth"),
    [("null", f"'{CEO}'"), ("1", f"'{CEO}'"), ("null", f"'{OWN}'"), ("1", "null")],
)
async def test_a_cancellation_in_the_name_of_another_is_neither_stored_nor_carried_out(
    ann: Any, filled: Any, database: Database, psql: Any, tenant: str, auth: str
) -> None:
    with pytest.raises(Refused):
        await ann.execute(CANCEL.format(tenant, auth), filled[2])

    await ann.execute(CANCEL.format("1", f"'{OWN}'"), filled[2])
    async with Forge(database_url=as_role("forge_worker", database.url)) as app, working(app):
        (request,) = await psql.fetch("select id from forge_jobs where job_type = 'forge.cancel'")
        with pytest.raises(JobFailed, match="there is no job"):
            await app.handle(request["id"]).result(30)
    assert (
        await psql.fetchval("select status from forge_jobs where id = $1", filled[2]) == "pending"
    )


@pytest.mark.parametrize(
    "change",
    ["reviewed_by = 'ann'", "notes = 'y'", "new_job_id = forge_uuidv7()", "reviewed_at = now()"],
)
async def test_a_closed_review_stays_as_it_was_signed(ann: Any, psql: Any, change: str) -> None:
    await psql.execute(
        "update forge_dead_letters set status = 'discarded', reviewed_by = 'bob', notes = 'x'"
    )

    # Who keeps bob's name is refused for that, and who writes their own for changing his review.
    with pytest.raises((Refused, asyncpg.CheckViolationError)):
        await ann.execute(f"update forge_dead_letters set {change}")
    with pytest.raises(asyncpg.CheckViolationError, match="already discarded"):
        await psql.execute(f"update forge_dead_letters set {change}")


async def test_a_bulk_reprocess_takes_only_dead_letters_of_its_tenant(
    ann: Any, database: Database, psql: Any
) -> None:
    everything = (
        '{"rate": 10, "canary": 0, "canary_seconds": 1, "max_failures": 9, '
        '"priority": 0, "until": 9000000000000000}'
    )

    await ann.execute(
        "insert into forge_jobs (job_type, queue, tenant_id, auth, input) "
        f"values ('forge.reprocess', 'forge', 1, '{OWN}', '{everything}')"
    )
    async with Forge(database_url=as_role("forge_worker", database.url)) as app, working(app):
        (request,) = await psql.fetch(
            "select id from forge_jobs where job_type = 'forge.reprocess'"
        )
        done = await app.handle(request["id"]).result(30)

    assert (done["reprocessed"], done["skipped"]) == (1, 0)
    audited = "select distinct tenant_id from forge_audit_events where event like 'job_dlq%'"
    assert [row["tenant_id"] for row in await psql.fetch(audited)] == [1]
