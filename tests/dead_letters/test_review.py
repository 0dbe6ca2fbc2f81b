"""Reviewing dead letters: reprocess, discard, and their audit rows."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from forge import AlreadyReviewed, Forge, InvalidPayload, InvalidValue, JobFailed, UnknownDeadLetter
from forge.store import dead_letters
from tests.dead_letters.conftest import Bury, Flaky

ENVELOPE: dict[str, Any] = {
    "tenant_id": 5,
    "correlation_id": "550e8400-e29b-41d4-a716-446655440000",
    "idempotency_key": "k1",
}


async def _audit(psql: Any, dlq_id: int) -> list[tuple[str, str | None, str | None]]:
    found = await psql.fetch(
        "select event, actor, notes from forge_audit_events where dlq_id = $1 order by id", dlq_id
    )
    return [tuple(row) for row in found]


async def test_reprocessing_creates_a_new_job_that_refers_to_the_old_one(
    app: Forge, bury: Bury, flaky: Flaky, psql: Any
) -> None:
    letter = await bury({"n": 7}, tenant_id=5, queue="mail", priority="high", tags=["a"])
    flaky.broken = False

    made = await app.dead_letters.reprocess(letter.dlq_id, notes="mended", actor="ann")

    assert await app.handle(made.new_job_id).result(20) == {"n": 7}
    job = await app.get(made.new_job_id)
    assert (job.retry_of, job.tenant_id, job.queue) == (letter.job_id, 5, "mail")
    assert (job.priority, job.tags) == (75, ["a"])
    assert job.meta == {"dlq_id": letter.dlq_id, "notes": "mended"}
    assert job.idempotency_key == made.new_idempotency_key
    assert made.new_idempotency_key.startswith(f"dlq_{letter.dlq_id}_retry_1")
    after = await app.dead_letters.get(letter.dlq_id)
    assert (after.status, after.reviewed_by, after.notes) == ("reprocessed", "ann", "mended")
    assert (after.new_job_id, after.payload) == (made.new_job_id, {"n": 7})
    assert (await app.get(letter.job_id)).status == "dead_letter"


async def test_the_request_is_audited_before_it_is_carried_out(
    app: Forge, bury: Bury, psql: Any
) -> None:
    letter = await bury()

    await app.dead_letters.reprocess(letter.dlq_id, notes="mended", actor="ann")

    assert await _audit(psql, letter.dlq_id) == [
        ("job_dlq_reprocess_requested", "ann", "mended"),
        ("job_dlq_reprocess_success", "ann", "mended"),
    ]


async def test_a_request_is_audited_even_if_the_callers_transaction_rolls_back(
    app: Forge, bury: Bury, psql: Any, database_url: str
) -> None:
    letter = await bury()
    conn = await asyncpg.connect(database_url)
    attempt = conn.transaction()
    await attempt.start()

    await app.dead_letters.reprocess(letter.dlq_id, actor="ann", conn=conn)
    await attempt.rollback()

    assert await _audit(psql, letter.dlq_id) == [("job_dlq_reprocess_requested", "ann", None)]
    assert (await app.dead_letters.get(letter.dlq_id)).status == "pending_review"
    assert await psql.fetchval("select count(*) from forge_jobs") == 1
    await conn.close()


async def test_two_concurrent_requests_create_one_job(app: Forge, bury: Bury, psql: Any) -> None:
    letter = await bury()

    results = await asyncio.gather(
        *(app.dead_letters.reprocess(letter.dlq_id, actor=f"a{n}") for n in range(8)),
        return_exceptions=True,
    )

    made = [result for result in results if not isinstance(result, BaseException)]
    lost = [result for result in results if isinstance(result, AlreadyReviewed)]
    assert (len(made), len(lost)) == (1, 7)
    assert "was reprocessed by a" in str(lost[0])
    assert await psql.fetchval("select count(*) from forge_jobs where retry_of is not null") == 1
    events = [event for event, _, _ in await _audit(psql, letter.dlq_id)]
    assert events.count("job_dlq_reprocess_requested") == 8
    assert events.count("job_dlq_reprocess_success") == 1
    assert events.count("job_dlq_reprocess_failed") == 7


async def test_concurrent_reprocess_and_discard_have_one_winner(
    app: Forge, bury: Bury, psql: Any
) -> None:
    letter = await bury()

    results = await asyncio.gather(
        app.dead_letters.reprocess(letter.dlq_id),
        app.dead_letters.discard(letter.dlq_id, notes="no"),
        return_exceptions=True,
    )

    assert sum(isinstance(result, AlreadyReviewed) for result in results) == 1


async def test_the_new_key_is_stored_in_the_column_and_in_the_payload(
    app: Forge, bury: Bury, flaky: Flaky
) -> None:
    letter = await bury(ENVELOPE | {"connection_id": 4}, type="fetch")
    flaky.broken = False

    made = await app.dead_letters.reprocess(letter.dlq_id)

    job = await app.get(made.new_job_id)
    assert made.new_idempotency_key.startswith("k1_retry_1")
    assert job.input == ENVELOPE | {"connection_id": 4, "idempotency_key": made.new_idempotency_key}
    assert job.idempotency_key == made.new_idempotency_key
    assert (job.category, str(job.correlation_id)) == ("ingestion", ENVELOPE["correlation_id"])
    assert await app.handle(job.id).result(20)


async def test_a_key_that_would_be_too_long_is_shortened_with_a_hash(
    app: Forge, bury: Bury
) -> None:
    keys = ["x" * 250 + end for end in ("ab", "cd")]

    made = []
    for key in keys:
        letter = await bury({"n": 1}, idempotency_key=key)
        made.append(await app.dead_letters.reprocess(letter.dlq_id))

    first, second = (one.new_idempotency_key for one in made)
    assert len(first) == len(second) == 255
    assert first.split("_retry_")[0] != second.split("_retry_")[0]


async def test_an_edited_payload_is_used_and_the_original_kept(
    app: Forge, bury: Bury, flaky: Flaky
) -> None:
    letter = await bury(ENVELOPE | {"connection_id": 4, "hopeless": True}, type="fetch")
    flaky.broken = False

    made = await app.dead_letters.reprocess(
        letter.dlq_id, payload={"connection_id": 9}, notes="the connection had moved"
    )

    done = await app.handle(made.new_job_id).result(20)
    assert done == ENVELOPE | {"connection_id": 9, "idempotency_key": made.new_idempotency_key}
    after = await app.dead_letters.get(letter.dlq_id)
    assert after.payload == ENVELOPE | {"connection_id": 4, "hopeless": True}
    assert after.edited_payload["connection_id"] == 9


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"connection_id": 9, "tenant_id": 6}, "$.tenant_id"),
        ({"connection_id": 9, "correlation_id": str(uuid4())}, "$.correlation_id"),
        ({}, "$.connection_id"),
        ({"connection_id": 9, "password": "x"}, "$.password"),
        ([1], "$"),
    ],
)
async def test_an_edited_payload_must_meet_the_rules_of_its_type(
    app: Forge, bury: Bury, psql: Any, payload: Any, path: str
) -> None:
    letter = await bury(ENVELOPE | {"connection_id": 4}, type="fetch")

    with pytest.raises(InvalidPayload) as refused:
        await app.dead_letters.reprocess(letter.dlq_id, payload=payload, actor="ann")

    assert refused.value.path == path
    assert (await app.dead_letters.get(letter.dlq_id)).status == "pending_review"
    assert [event for event, _, _ in await _audit(psql, letter.dlq_id)] == [
        "job_dlq_reprocess_requested",
        "job_dlq_reprocess_failed",
    ]
    detail = await psql.fetchval("select detail from forge_audit_events order by id desc limit 1")
    assert path in json.loads(detail)["reason"]


async def test_discarding_closes_the_review_with_a_reason(
    app: Forge, bury: Bury, psql: Any
) -> None:
    letter = await bury()

    await app.dead_letters.discard(letter.dlq_id, notes="a duplicate", actor="ann")

    after = await app.dead_letters.get(letter.dlq_id)
    assert (after.status, after.notes, after.reviewed_by) == ("discarded", "a duplicate", "ann")
    assert await _audit(psql, letter.dlq_id) == [("job_dlq_discarded", "ann", "a duplicate")]
    with pytest.raises(AlreadyReviewed, match="was discarded by ann already"):
        await app.dead_letters.reprocess(letter.dlq_id)


async def test_a_reviewed_letter_cannot_be_discarded(app: Forge, bury: Bury, psql: Any) -> None:
    letter = await bury()
    await app.dead_letters.discard(letter.dlq_id, notes="a duplicate", actor="ann")

    with pytest.raises(AlreadyReviewed, match="was discarded by ann already"):
        await app.dead_letters.discard(letter.dlq_id, notes="once more", actor="bob")

    assert (await app.dead_letters.get(letter.dlq_id)).notes == "a duplicate"
    assert await _audit(psql, letter.dlq_id) == [("job_dlq_discarded", "ann", "a duplicate")]


@pytest.mark.parametrize("notes", ["", "  \n", None])
async def test_discarding_requires_notes(app: Forge, bury: Bury, notes: Any) -> None:
    letter = await bury()

    with pytest.raises(InvalidValue, match=r"notes are required to discard.*explain why"):
        await app.dead_letters.discard(letter.dlq_id, notes=notes)
    with pytest.raises(InvalidValue, match="notes are required to discard"):
        await app.dead_letters.discard(letter.dlq_id)


async def test_a_missing_letter_and_one_of_another_tenant_are_not_found(
    app: Forge, bury: Bury, psql: Any
) -> None:
    letter = await bury(tenant_id=5)

    for act in (
        app.dead_letters.get(99),
        app.dead_letters.reprocess(99),
        app.dead_letters.discard(99, notes="x"),
        app.dead_letters.get(letter.dlq_id, tenant_id=6),
        app.dead_letters.reprocess(letter.dlq_id, tenant_id=6),
        app.dead_letters.discard(letter.dlq_id, tenant_id=6, notes="x"),
    ):
        with pytest.raises(UnknownDeadLetter):
            await act
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_the_reprocess_statement_itself_checks_the_tenant(
    app: Forge, bury: Bury, psql: Any
) -> None:
    letter = await bury(tenant_id=5)
    database = await (await app.session()).database()

    made = await database.run(dead_letters.reprocess([letter.dlq_id], 6, "ann", None))

    assert made == []
    assert await psql.fetchval("select count(*) from forge_jobs") == 1
    assert (await app.dead_letters.get(letter.dlq_id)).status == "pending_review"


async def test_a_review_is_final_for_every_caller(app: Forge, bury: Bury, psql: Any) -> None:
    letter = await bury()
    await app.dead_letters.discard(letter.dlq_id, notes="x")

    with pytest.raises(asyncpg.CheckViolationError, match="is already discarded"):
        await psql.execute("update forge_dead_letters set status = 'pending_review'")


async def test_a_reprocessed_job_that_fails_again_is_a_new_dead_letter(
    app: Forge, bury: Bury
) -> None:
    first = await bury({"n": 1}, idempotency_key="k")

    made = await app.dead_letters.reprocess(first.dlq_id)
    with pytest.raises(JobFailed, match="dead_letter"):
        await app.handle(made.new_job_id).result(20)

    (second, again) = (await app.dead_letters.list()).items
    assert again.dlq_id == first.dlq_id
    assert (second.job_id, second.fingerprint) == (made.new_job_id, first.fingerprint)
    third = await app.dead_letters.reprocess(second.dlq_id)
    assert third.new_idempotency_key.count("_retry_") == 2
