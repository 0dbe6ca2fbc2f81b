"""The timeline of a job over HTTP: everything that happened, in order, for those who may see it."""

from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from forge import Forge, JobContext, NonRetryable, Snooze, Transient
from forge.core.timeline import MAX_ATTEMPTS, MAX_TRACES, EntryKind
from tests.apps import Work
from tests.http.conftest import MakeToken
from tests.http.job_client import dispatched
from tests.store.placing import insert

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "timeline.md"


async def test_a_snooze_a_retry_and_a_request_are_entries_in_order(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    @app.job(max_attempts=2)
    async def live(ctx: JobContext, input: dict[str, Any]) -> None:
        if ctx.lease == 1:
            raise Snooze("1ms")
        ctx.log.info("trying", password="hunter2!", attempt=ctx.attempt)
        if ctx.lease == 2:
            raise Transient("not yet: token=abc123")
        raise NonRetryable("never")

    ann = token("user", "staff", tenant=7, name="ann")
    job_id = await dispatched(http, ann, "live", delay="1h")
    await work(app)
    moved = await http.post(f"/_api/jobs/{job_id}/run_now", headers=ann)
    await app.handle(UUID(moved.json()["job_id"])).result(timeout=20)
    async for _ in app.handle(job_id).updates():
        pass

    answer = await http.get(f"/_api/jobs/{job_id}/timeline", headers=ann)
    of_user = await http.get(f"/_api/jobs/{job_id}/timeline", headers=token("user", tenant=7))
    in_python = await app.handle(job_id).timeline()

    found = answer.json()
    assert found["job_id"] == str(job_id)
    assert found["truncated"] is False
    begin = [EntryKind.CLAIMED, EntryKind.STARTED]
    assert [entry["kind"] for entry in found["items"]] == [
        EntryKind.DISPATCHED,
        EntryKind.AUDIT,
        *(*begin, EntryKind.SNOOZED),
        *(*begin, EntryKind.LOG, EntryKind.FAILED, EntryKind.RETRY),
        *(*begin, EntryKind.LOG, EntryKind.FAILED, EntryKind.ENDED),
    ]
    assert [entry.kind for entry in in_python.items] == [entry["kind"] for entry in found["items"]]
    by_kind = {entry["kind"]: entry for entry in found["items"]}
    assert by_kind["dispatched"]["detail"]["by"] == "ann"
    assert by_kind["audit"]["detail"]["event"] == "job_run_now"
    assert by_kind["snoozed"]["attempt"] == 1
    assert by_kind["retry"]["detail"]["due_at"] > by_kind["retry"]["at"]
    assert "Traceback" in by_kind["failed"]["detail"]["trace"]
    assert by_kind["ended"]["detail"] == {"status": "dead_letter"}
    assert [e["attempt"] for e in found["items"] if e["kind"] == "log"] == [1, 2]
    assert not any(secret in answer.text for secret in ("abc123", "hunter2"))
    # The audit is for staff.
    assert [e["kind"] for e in of_user.json()["items"]] == [
        entry["kind"] for entry in found["items"] if entry["kind"] != "audit"
    ]


async def test_a_long_life_is_bounded(app: Forge, psql: Any) -> None:
    job_id = await insert(psql)
    await psql.execute(
        """
        insert into forge_attempts (job_id, lease, attempt, outcome, error, trace, ended_at)
        select $1, n, n, 'retry', 'no', 'a trace', now() + n * interval '1 s'
        from generate_series(1, $2) as n
        """,
        job_id,
        MAX_ATTEMPTS + 50,
    )
    await psql.execute(
        """
        insert into forge_attempt_logs (job_id, lease, kind, slot, number, at, level, message)
        select $1, n / 100, 'log', n % 100, n, now() + n * interval '1 ms', 'info', 'line ' || n
        from generate_series(1, 2000) as n
        """,
        job_id,
    )

    timeline = await app.timeline(job_id)

    failed = [entry for entry in timeline.items if entry.kind is EntryKind.FAILED]
    lines = [entry.message for entry in timeline.items if entry.kind is EntryKind.LOG]
    assert timeline.truncated
    assert [entry.lease for entry in failed] == list(range(51, MAX_ATTEMPTS + 51))
    assert sum("trace" in entry.detail for entry in failed) == MAX_TRACES
    assert "trace" in failed[-1].detail
    assert lines == [f"line {n}" for n in range(1501, 2001)]


def test_every_kind_of_entry_is_documented() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert [row[1].strip(" `") for row in rows] == [*EntryKind]
