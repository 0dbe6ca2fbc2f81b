"""Dead letters of the firms example: visibility, review by managers, and audit."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from examples.firm.local_provider import NO_MAIL
from examples.firm.people import ACCOUNTANTS, LAWYERS
from examples.firm.review import DLQ, discard_leftovers

from forge.core.payload_rules import CATEGORIES
from forge.store.embedded import Cluster
from tests.examples.firms import Firms, at_work, firms, make_app, work
from tests.template import empty_database

__all__ = ["at_work", "firms", "make_app", "work"]

CHECKOUT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "examples.firm"]


@pytest.fixture
async def letter(at_work: Firms) -> Any:
    """A dead letter of the lawyers: a mail whose mailbox was revoked."""
    return await _fail(at_work, "will")


async def test_a_dead_letter_has_everything_a_review_needs(at_work: Firms, letter: Any) -> None:
    job = await at_work.clients.max.get(f"/_api/jobs/{letter['job_id']}")

    assert letter["payload"] == job["input"]
    assert letter["payload"]["external_message_id"] == "will"
    assert (letter["category"], letter["error_class"]) == ("ingestion", "non_retryable")
    assert (letter["status"], letter["attempt_count"]) == ("pending_review", 1)
    assert letter["original_created_at"] == job["created_at"]
    assert letter["correlation_id"] == job["correlation_id"]
    assert [one["error"] for one in letter["attempts"]] == [letter["error_message"]]


async def test_only_the_firms_own_manager_can_see_and_review_a_dead_letter(
    at_work: Firms, letter: Any
) -> None:
    clients, path, notes = at_work.clients, f"{DLQ}/{letter['dlq_id']}", {"notes": "not mine"}

    for client, status in ((clients.tom, 404), (clients.ann, 403), (clients.bea, 403)):
        await client.get(f"{path}/", expect=status)
        await client.post(f"{path}/reprocess/", notes, expect=status)
        await client.post(f"{path}/discard/", notes, expect=status)
    await clients.tom.post(f"{DLQ}/reprocess/", {"job_type": "notify"}, expect=202)
    dry = {"fingerprint": letter["fingerprint"], "dry_run": True}
    theirs = await clients.tom.post(f"{DLQ}/reprocess/", dry)

    assert (await clients.tom.get(f"{DLQ}/"))["total_count"] == theirs["letters"] == 0
    assert (await clients.tom.get(f"{DLQ}/groups/"))["groups"] == []
    assert (await clients.tom.get(f"{DLQ}/statistics/"))["total_count"] == 0
    assert (await clients.max.get(f"{path}/"))["status"] == "pending_review"
    assert (await clients.max.get("/_api/audit", dlq_id=letter["dlq_id"]))["items"] == []


async def test_the_same_cause_forms_one_group(at_work: Firms, letter: Any) -> None:
    await _fail(at_work, "lease")
    await _fail(at_work, "scan", NO_MAIL, at_work.mailbox)

    groups = (await at_work.clients.max.get(f"{DLQ}/groups/"))["groups"]

    assert [(group["letters"], group["place"]) for group in groups] == [
        (2, "examples.firm.mail:fetch"),
        (1, "examples.firm.mail:read"),
    ]
    assert groups[0]["fingerprint"] == letter["fingerprint"]


async def test_an_edited_payload_is_reprocessed_and_the_original_kept(
    at_work: Firms, letter: Any
) -> None:
    max, dlq_id = at_work.clients.max, letter["dlq_id"]
    edited = {**letter["payload"], "connection_id": at_work.mailbox}
    body = {"notes": "reconnected", "payload": edited}

    made = await max.post(f"{DLQ}/{dlq_id}/reprocess/", body)
    job = await max.wait_for(made["new_job_id"])

    assert (job["status"], job["retry_of"]) == ("completed", letter["job_id"])
    assert made["new_idempotency_key"].startswith(f"{letter['idempotency_key']}_retry_")
    now = await max.get(f"{DLQ}/{dlq_id}/")
    assert (now["status"], now["reviewed_by"]) == ("reprocessed", "max")
    assert (now["notes"], now["new_job_id"]) == ("reconnected", made["new_job_id"])
    assert now["payload"] == letter["payload"]
    assert now["edited_payload"]["connection_id"] == at_work.mailbox
    filed = await at_work.psql.fetch("select connection_id, external_message_id from mails")
    assert filed == [(at_work.mailbox, "will")]
    assert await _audit(at_work, dlq_id) == [
        ("job_dlq_reprocess_requested", "max", LAWYERS, "reconnected"),
        ("job_dlq_reprocess_success", "max", LAWYERS, "reconnected"),
    ]


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        ({"access_token": "t-4711"}, "$.payload.access_token"),
        ({"tenant_id": ACCOUNTANTS}, "$.payload.tenant_id"),
        ({"external_message_id": ""}, "$.payload.external_message_id"),
    ],
)
async def test_an_edit_must_meet_the_rules_and_keep_its_firm(
    at_work: Firms, letter: Any, edit: dict[str, Any], path: str
) -> None:
    jobs = await at_work.count("forge_jobs")
    body = {"notes": "an edit", "payload": {**letter["payload"], **edit}}

    refused = await at_work.clients.max.post(
        f"{DLQ}/{letter['dlq_id']}/reprocess/", body, expect=422
    )

    assert [fault["path"] for fault in refused["errors"]] == [path]
    assert await at_work.count("forge_jobs") == jobs
    assert [event for event, *_ in await _audit(at_work, letter["dlq_id"])] == [
        "job_dlq_reprocess_requested",
        "job_dlq_reprocess_failed",
    ]


async def test_two_concurrent_reprocesses_create_one_job(at_work: Firms, letter: Any) -> None:
    jobs = await at_work.count("forge_jobs")
    path = f"{DLQ}/{letter['dlq_id']}/reprocess/"

    ended = await asyncio.gather(
        *(at_work.clients.max.post(path, {"notes": str(n)}) for n in range(4)),
        return_exceptions=True,
    )

    refused = [str(one) for one in ended if isinstance(one, RuntimeError)]
    assert len(refused) == 3
    assert all("returned 409" in reason for reason in refused)
    assert await at_work.count("forge_jobs") == jobs + 1


async def test_a_discard_records_the_reason_and_the_actor(at_work: Firms, letter: Any) -> None:
    max, path = at_work.clients.max, f"{DLQ}/{letter['dlq_id']}"

    for body in ({}, {"notes": ""}, {"notes": " "}):
        await max.post(f"{path}/discard/", body, expect=422)
    await max.post(f"{path}/discard/", {"notes": "came on paper"})
    await max.post(f"{path}/reprocess/", {"notes": "after all"}, expect=409)

    assert (await max.get(f"{path}/"))["status"] == "discarded"
    assert (await _audit(at_work, letter["dlq_id"]))[0] == (
        "job_dlq_discarded",
        "max",
        LAWYERS,
        "came on paper",
    )


async def test_leftovers_of_an_interrupted_run_are_closed(at_work: Firms, letter: Any) -> None:
    await discard_leftovers(at_work.clients.max)

    counts = await at_work.clients.max.get(f"{DLQ}/statistics/")
    assert counts["by_status"] == {"discarded": 1}


@pytest.fixture(scope="module")
def ran(server: Cluster) -> Iterator[tuple[str, str]]:
    """The output of the command's second run on one database, and that database."""
    with empty_database(server) as url:
        env = os.environ | {"FORGE_DATABASE_URL": url}
        for _ in range(2):
            done = subprocess.run(
                COMMAND, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=110
            )
            assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        yield done.stdout, url


def test_without_a_terminal_the_command_ends_and_its_output_matches_the_database(
    ran: tuple[str, str],
) -> None:
    output, database = ran

    with psycopg.connect(database) as connection:
        letters = connection.execute(
            "select tenant_id, status, count(*) from forge_dead_letters group by 1, 2"
        ).fetchall()
        jobs = connection.execute(
            "select tenant_id, count(*) from forge_jobs group by 1 order by 1"
        ).fetchall()

    assert sorted(letters) == [(1, "discarded", 4), (1, "reprocessed", 4), (2, "reprocessed", 4)]
    assert [tenant_id for tenant_id, _ in jobs] == [LAWYERS, ACCOUNTANTS]
    for tenant_id, count in jobs:
        who = {LAWYERS: "max", ACCOUNTANTS: "tom"}[tenant_id]
        assert f"Statistics for {who}'s firm, over all runs:\n    {count} jobs: " in output
    assert "8 dead letters: 4 discarded, 4 reprocessed" in output
    assert "contract, the second time: the same job" in output
    for category in ("recurrence", "orchestration", "export", "maintenance"):
        assert re.search(rf"^    {category}: \w+ completed", output, re.MULTILINE)
    assert "DOC-17: attempt 3 was retryable" in output
    assert "DOC-17: dead_letter at attempt 3" in output
    assert "documents: 3 of 3 attempts were used" in output
    with psycopg.connect(database) as connection:
        (used,) = connection.execute(
            "select array_agg(distinct category::text) from forge_jobs where category is not null"
        ).fetchone() or (None,)
    assert set(used or ()) == set(CATEGORIES)
    assert "6 appointments; requests for the first page: 1" in output


@pytest.mark.parametrize(
    "line",
    [
        "$.args.email_body: has the name of an embedded body or document",
        "$.args.source.access_token: has the name of a secret",
        "deadline: attempt 1 was transient; retried after",
        "invoice: attempt 1 was rate_limited; retried after",
        "will: dead_letter at attempt 1",
        "Tom, the other firm's manager: 404",
        "2 × forge.NonRetryable in examples.firm.mail:fetch",
        "$.payload.access_token: has the name of a secret",
        "max job_dlq_reprocess_success: reconnected",
        "max job_dlq_discarded: the client sent it again, on paper",
        "one canary first, then the rest: 2 reprocessed",
        "mail from will@client.example: the will",
    ],
)
def test_the_output_of_the_command_contains(ran: tuple[str, str], line: str) -> None:
    assert line in ran[0]


def test_no_provider_token_is_stored_in_jobs_dead_letters_or_audit(
    ran: tuple[str, str],
) -> None:
    with psycopg.connect(ran[1]) as connection:
        tokens = connection.execute("select distinct token from connections").fetchall()
        written = connection.execute(
            "select string_agg(t, ' ') from (select j::text as t from forge_jobs j union all"
            " select l::text from forge_dead_letters l union all select a::text"
            " from forge_attempts a union all select e::text from forge_audit_events e) as all_of"
        ).fetchone()

    assert written is not None
    random = [token for (token,) in tokens if not token.startswith("revoked")]
    assert len(random) == 4
    assert not [token for token in random if token in written[0]]


def test_an_unreachable_database_is_reported_in_one_line() -> None:
    env = os.environ | {"FORGE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}

    ended = subprocess.run(
        COMMAND, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "FORGE_DATABASE_URL" in ended.stderr


async def _fail(
    firms: Firms, name: str, content: bytes | None = None, connection_id: int | None = None
) -> Any:
    """Make a mail fail permanently, and return its dead letter."""
    firms.provider.post(name, f"{name}@client.example", f"the {name}")
    firms.provider.mails[name] = content or firms.provider.mails[name]
    if connection_id is None:
        connection_id = await firms.connect(LAWYERS, "revoked")
    made = await firms.clients.ann.fetch_mail(connection_id, name)
    assert (await firms.clients.ann.wait_for(made["job_id"]))["status"] == "dead_letter"
    newest = (await firms.clients.max.get(f"{DLQ}/"))["dlq_items"][0]
    assert newest["job_id"] == made["job_id"]
    return await firms.clients.max.get(f"{DLQ}/{newest['dlq_id']}/")


async def _audit(firms: Firms, dlq_id: int) -> list[tuple[Any, ...]]:
    """Return actors and actions, oldest first."""
    found = (await firms.clients.max.get("/_api/audit", dlq_id=dlq_id))["items"]
    names = ("event", "actor", "tenant_id", "notes")
    return [tuple(event[name] for name in names) for event in reversed(found)]
