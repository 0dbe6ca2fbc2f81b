"""Run a final job again: over HTTP and in Python, with a patch of the stored input."""

import json
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, InvalidValue, JobContext, Status
from forge.core.lifecycle import FINAL
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.jobs import RerunChanges
from tests.apps import Work
from tests.http.conftest import MakeToken
from tests.http.job_client import code, dispatched, paths
from tests.store.placing import placed


class Export(BaseModel):
    """Input of an export."""

    format: str
    password: str
    to: dict[str, str] = {}


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    @app.job
    async def export(ctx: JobContext, input: Export) -> dict[str, Any]:
        return {"input": input.model_dump(), "who": ctx.auth.name}

    @app.job(idempotent="input.order")
    async def pay(ctx: JobContext, input: dict[str, Any]) -> None: ...


INPUT = {"format": "csv", "password": "hunter2", "to": {"mail": "a@b", "copy": "c@d"}}


async def rerun(
    http: httpx.AsyncClient, headers: dict[str, str], job_id: UUID, **body: Any
) -> httpx.Response:
    return await http.post(f"/_api/jobs/{job_id}/rerun", json=body, headers=headers)


async def test_a_patch_applies_to_the_stored_input_and_the_caller_is_the_new_auth(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: Any
) -> None:
    await work(app)
    ada, bob = token("user", tenant=7, name="ada"), token("user", tenant=7, name="bob")
    old = await dispatched(http, ada, "export", args=INPUT, tags=["a"], correlation_id=str(uuid4()))
    await app.handle(old).result(timeout=20)

    answer = await rerun(
        http, bob, old, patch={"format": "pdf", "to": {"copy": None}}, reason="wrong format"
    )

    assert answer.status_code == 202
    made = answer.json()
    assert (made["status"], made["retry_of"]) == ("pending", str(old))
    live = await http.get(
        f"/_api/jobs/{made['job_id']}/live", params={"watch_token": made["watch_token"]}
    )
    assert live.status_code == 200
    # The password was never shown to bob, and the new job has it.
    output = await app.handle(UUID(made["job_id"])).result(timeout=20)
    kept = {"password": "hunter2", "to": {"mail": "a@b"}}
    assert output == {"input": kept | {"format": "pdf"}, "who": "bob"}
    before, after = await app.get(old), await app.get(made["job_id"])
    assert (after.retry_of, after.parent_id) == (old, None)
    assert (after.correlation_id, after.tags, after.tenant_id) == (
        before.correlation_id,
        before.tags,
        7,
    )
    rows = await psql.fetch("select * from forge_audit_events where job_id = $1", old)
    assert [(r["event"], r["actor"], r["tenant_id"], r["notes"]) for r in rows] == [
        ("job_rerun", "bob", 7, "wrong format")
    ]
    assert json.loads(rows[0]["detail"]) == {"new_job_id": made["job_id"], "edited": True}


async def test_dry_run_checks_the_patch_and_creates_nothing(
    http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    stored = json.dumps(INPUT)
    job_id = await placed(psql, Status.COMPLETED, worker=uuid4(), job_type="export", input=stored)

    valid = await rerun(http, token("user"), job_id, patch={"format": "pdf"}, dry_run=True)
    invalid = await rerun(http, token("user"), job_id, patch={"format": 7}, dry_run=True)

    assert valid.status_code == 202
    assert valid.json() == {
        "dry_run": True,
        "job_id": None,
        "status": "pending",
        "retry_of": str(job_id),
        "watch_token": None,
    }
    assert code(invalid) == (422, "invalid")
    assert paths(invalid) == ["$.patch.format"]
    assert await psql.fetchval("select count(*) from forge_jobs") == 1
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


@pytest.mark.parametrize("status", Status)
async def test_exactly_the_final_statuses_can_be_run_again(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any, status: Status
) -> None:
    stored = json.dumps(INPUT)
    job_id = await placed(psql, status, worker=uuid4(), job_type="export", input=stored)

    answer = await rerun(http, token("user"), job_id, delay="1h", queue="late", priority="low")

    if status not in FINAL:
        assert code(answer) == (409, "conflict")
        with pytest.raises(InvalidValue, match="only a final job can be run again"):
            await app.handle(job_id).rerun()
        assert await psql.fetchval("select count(*) from forge_audit_events") == 0
        return
    made = await app.get(answer.json()["job_id"])
    assert (made.input, made.queue, made.priority) == (INPUT, "late", 25)
    assert (made.scheduled_at - made.created_at).total_seconds() == 3600
    at = await rerun(http, token("user"), job_id, scheduled_at="2135-01-01T00:00:00Z")
    assert (await app.get(at.json()["job_id"])).scheduled_at.year == 2135


async def test_what_is_invalid_is_refused_with_its_path_and_leaves_no_job(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    job_id = await placed(
        psql, Status.FAILED, worker=uuid4(), job_type="export", input=json.dumps(INPUT)
    )
    user = token("user")

    shown = await http.get(f"/_api/jobs/{job_id}", headers=user)
    back = shown.json()["input"]
    assert back["password"] == "[redacted]"
    assert paths(await rerun(http, user, job_id, patch=back)) == ["$.patch.password"]
    assert paths(await rerun(http, user, job_id, patch={"format": 7})) == ["$.patch.format"]
    assert paths(await rerun(http, user, job_id, patch={"format": None})) == ["$.patch.format"]
    assert paths(await rerun(http, user, job_id, delay="1h", patsch=1)) == ["$.patsch"]
    both = {"delay": "1h", "scheduled_at": "2030-01-01T00:00:00Z"}
    assert code(await rerun(http, user, job_id, **both)) == (422, "invalid")
    high = await rerun(http, user, job_id, priority="critical")
    assert code(high) == (403, "priority_too_high")
    builtin = await placed(psql, Status.FAILED, worker=uuid4(), job_type="forge.cancel")
    assert code(await rerun(http, user, builtin)) == (403, "forbidden")
    assert await psql.fetchval("select count(*) from forge_jobs") == 2


async def test_a_redacted_value_that_comes_back_is_refused_by_every_dispatch(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    back = INPUT | {"to": {"mail": "sent with token=[redacted]"}}

    with pytest.raises(InvalidPayload, match=r"\$\.to\.mail is a redacted value") as refused:
        await app.dispatch("export", back)
    assert refused.value.path == "$.to.mail"
    with pytest.raises(InvalidPayload, match=r"input 1: .*\$\.password"):
        await app.dispatch_many("export", [INPUT, INPUT | {"password": "[redacted]"}])
    answer = await http.post(
        "/_api/jobs/export/dispatch", json={"args": back}, headers=token("user")
    )
    assert paths(answer) == ["$.args.to.mail"]
    await psql.execute("insert into forge_job_types (name) values ('export')")
    with pytest.raises(Exception, match=r"the input of export: \$.to.mail is a redacted value"):
        await psql.fetchval("select forge_dispatch('export', $1)", json.dumps(back))
    listed = {"to": [{"a": 1}, {"[redacted]": 1}]}
    with pytest.raises(Exception, match=r"\$\.to\[1\]\.\[redacted\] is a redacted value"):
        await psql.fetchval("select forge_dispatch('export', $1)", json.dumps(listed))
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_a_job_with_a_key_gets_a_new_key_and_a_user_no_higher_priority(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    await work(app)
    old = await app.dispatch("pay", {"order": 1}, priority="critical", tenant_id=7)
    await old.result(timeout=20)

    of_user = await rerun(http, token("user", tenant=7), old.id)
    of_staff = await rerun(http, token("staff", tenant=7), old.id)
    again = await app.handle(UUID(of_user.json()["job_id"])).get()

    assert (await old.get()).idempotency_key == again.idempotency_key.partition("_retry_")[0]  # type: ignore[union-attr]
    assert again.priority == 50
    assert (await app.get(of_staff.json()["job_id"])).priority == 100
    assert (await app.dispatch("pay", {"order": 1}, tenant_id=7)).id == old.id


async def test_handles_run_their_job_again_with_the_type_of_its_result(
    app: Forge, work: Work
) -> None:
    await work(app)
    old = await app.dispatch("export", INPUT, auth={"name": "ann"})
    await old.result(timeout=20)

    new = await old.rerun({"format": "xml"}, reason="wrong format")

    assert (await new.result(timeout=20))["input"]["format"] == "xml"
    # Without another auth the handler sees who dispatched the old job.
    assert (await new.result(timeout=20))["who"] == "ann"


async def test_a_job_that_asks_for_many_makes_one_of_each(database: Database, psql: Any) -> None:
    ended = [await placed(psql, status, worker=uuid4()) for status in sorted(FINAL)]
    waits = await placed(psql, Status.PENDING, worker=uuid4())
    bulk = uuid4()

    def again() -> Any:
        return jobs.rerun([*ended, waits], None, "all", "ann", RerunChanges(), request=bulk)

    first = await database.run(again())
    second = await database.run(again())

    assert {made.id for made in first} == set(ended)
    assert second == []
    made = await psql.fetch("select retry_of, parent_id from forge_jobs where retry_of is not null")
    assert {(row["retry_of"], row["parent_id"]) for row in made} == {(id, bulk) for id in ended}
    # The event of the request stands for all of them.
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0
