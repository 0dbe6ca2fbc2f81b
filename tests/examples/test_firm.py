"""The firms example: rules, retries, limits and checkpoints, over HTTP with a real worker."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from examples.firm.api_client import mail_key
from examples.firm.app import file_mail
from examples.firm.local_provider import NO_MAIL
from examples.firm.mail import Mail, MalformedMail, read
from examples.firm.people import ACCOUNTANTS, LAWYERS

from forge import InvalidPayload, Rejected
from tests.examples.firms import Firms, at_work, firms, make_app, work
from tests.faults.kit.process import until

__all__ = ["at_work", "firms", "make_app", "work"]

SECRETS = [
    ({"email_body": "Dear counsel"}, "$.args.email_body"),
    ({"source": {"access_token": "t-4711"}}, "$.args.source.access_token"),
    ({"source": [{"note": "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln"}]}, "$.args.source[0].note"),
    ({"source": {"note": "4111 1111 1111 1111"}}, "$.args.source.note"),
]


@pytest.mark.parametrize(("content", "path"), SECRETS)
async def test_sensitive_content_is_rejected_with_its_path_but_not_its_value(
    firms: Firms, content: dict[str, Any], path: str
) -> None:
    args = {"connection_id": firms.mailbox, "external_message_id": "contract", **content}

    refused = await firms.clients.ann.dispatch("email_ingestion_fetch", "a_key", args, expect=422)

    assert [fault["path"] for fault in refused["errors"]] == [path]
    assert not any(value in str(refused) for value in ("Dear", "t-4711", "eyJ", "4111"))
    assert await firms.count("forge_jobs") == await firms.count("forge_idempotency_keys") == 0


async def test_a_payload_contains_tenant_key_and_reference(
    firms: Firms,
) -> None:
    ann, path = firms.clients.ann, "/_api/jobs/email_ingestion_fetch/dispatch"
    args = {"connection_id": firms.mailbox, "external_message_id": ""}

    refused = await ann.post(path, {"args": args}, expect=422)

    assert {fault["path"] for fault in refused["errors"]} == {
        "$.args.correlation_id",
        "$.args.idempotency_key",
        "$.args.external_message_id",
    }


async def test_a_user_cannot_dispatch_for_another_firm(firms: Firms) -> None:
    args = {"connection_id": firms.theirs, "external_message_id": "payroll"}
    body = {"args": args, "idempotency_key": "a_key", "tenant_id": ACCOUNTANTS}

    await firms.clients.ann.post("/_api/jobs/email_ingestion_fetch/dispatch", body, expect=403)
    inside = {**args, "tenant_id": ACCOUNTANTS}
    await firms.clients.ann.dispatch("email_ingestion_fetch", "a_key", inside, expect=422)

    assert await firms.count("forge_jobs") == 0


async def test_a_connection_of_another_firm_is_not_found(at_work: Firms) -> None:
    at_work.provider.post("payroll", "pay@client.example", "the payroll")

    made = await at_work.clients.ann.fetch_mail(at_work.theirs, "payroll")
    job = await at_work.clients.ann.wait_for(made["job_id"])

    assert (job["status"], job["error_class"]) == ("dead_letter", "non_retryable")
    assert job["last_error"] == (
        f"Firm {LAWYERS} has no connection {at_work.theirs}. Connect it first."
    )
    assert at_work.provider.answers.total() == 0


async def test_a_mail_is_fetched_filed_and_notified_once(
    at_work: Firms,
) -> None:
    ann, provider = at_work.clients.ann, at_work.provider
    provider.post("contract", "carla@client.example", "the contract")

    replies = await asyncio.gather(*(ann.fetch_mail(at_work.mailbox, "contract") for _ in range(5)))
    job = await ann.wait_for(replies[0]["job_id"])
    await until(lambda: at_work.count("notices"), 20, "a notification was sent")

    assert len({reply["job_id"] for reply in replies}) == 1
    assert sorted(reply["deduplicated"] for reply in replies) == [False, *4 * [True]]
    assert (job["status"], job["category"], job["tenant_id"]) == ("completed", "ingestion", LAWYERS)
    assert provider.answers == {("contract", 200): 1}
    text = "mail from carla@client.example: the contract"
    assert await at_work.psql.fetch("select tenant_id, text from notices") == [(LAWYERS, text)]
    # The notification refers to its mail.
    assert await at_work.psql.fetchval("select count(distinct correlation_id) from forge_jobs") == 1


async def test_the_same_key_at_another_firm_is_another_job(firms: Firms) -> None:
    args = {"connection_id": 1, "external_message_id": "contract"}

    ours = await firms.clients.ann.dispatch("email_ingestion_fetch", "a_key", args)
    theirs = await firms.clients.bea.dispatch("email_ingestion_fetch", "a_key", args)

    assert ours["job_id"] != theirs["job_id"]
    await firms.clients.ann.get(f"/_api/jobs/{theirs['job_id']}", expect=404)


async def test_an_outage_is_transient_and_retried(at_work: Firms) -> None:
    at_work.provider.post("deadline", "court@state.example", "a deadline")
    at_work.provider.troubles["deadline"] = [(503, {})]

    made = await at_work.clients.ann.fetch_mail(at_work.mailbox, "deadline")
    job = await at_work.clients.ann.wait_for(made["job_id"])

    (failed,) = await at_work.attempts(made["job_id"])
    assert (job["status"], job["attempts"], job["max_attempts"]) == ("completed", 2, 5)
    assert failed["error_class"] == "transient"
    # 2 s, plus or minus 20 %.
    assert _waited(failed, job) >= timedelta(seconds=1.6)


async def test_retry_after_of_the_provider_is_honoured(at_work: Firms) -> None:
    at_work.provider.post("invoice", "dora@client.example", "your invoice")
    at_work.provider.troubles["invoice"] = [(429, {"Retry-After": "1"})]

    made = await at_work.clients.ann.fetch_mail(at_work.mailbox, "invoice")
    job = await at_work.clients.ann.wait_for(made["job_id"])

    (failed,) = await at_work.attempts(made["job_id"])
    assert (job["status"], failed["error_class"]) == ("completed", "rate_limited")
    # Without the header it would be a minute.
    assert timedelta(seconds=1) <= _waited(failed, job) < timedelta(seconds=40)


async def test_a_calendar_sync_resumes_at_its_checkpoint(at_work: Firms) -> None:
    ann, provider = at_work.clients.ann, at_work.provider
    provider.pages = [[_event(1), _event(2)], [_event(3)], [], [_event(4)]]
    provider.troubles["page 2"] = [(429, {"Retry-After": "1"})]

    args = {"connection_id": at_work.mailbox}
    made = await ann.dispatch("calendar_sync", f"sync_{at_work.mailbox}", args)
    job = await ann.wait_for(made["job_id"])

    assert (job["status"], job["output"], job["attempts"]) == ("completed", 4, 2)
    requests = {f"page {number}": provider.answers[f"page {number}", 200] for number in range(1, 5)}
    assert requests == {"page 1": 1, "page 2": 1, "page 3": 1, "page 4": 1}
    assert await at_work.count("appointments") == 4


@pytest.mark.parametrize("header", [{}, {"Retry-After": "Wed, 21 Oct 2037 07:28:00 GMT"}])
async def test_a_rate_limit_without_retry_after_waits_a_minute(
    at_work: Firms, header: dict[str, str]
) -> None:
    at_work.provider.pages = [[_event(1)]]
    at_work.provider.troubles["page 1"] = [(429, header)]

    args = {"connection_id": at_work.mailbox}
    made = await at_work.clients.ann.dispatch("calendar_sync", "sync", args)
    path = f"/_api/jobs/{made['job_id']}"

    async def retried() -> Any:
        job = await at_work.clients.ann.get(path)
        return job if job["status"] == "retry" else None

    job = await until(retried, 20, "it waits")
    (failed,) = await at_work.attempts(made["job_id"])
    wait = _moment(job["scheduled_at"]) - _moment(failed["ended_at"])
    assert timedelta(seconds=40) < wait < timedelta(seconds=80)


async def test_a_mail_that_is_filed_twice_is_notified_once(firms: Firms) -> None:
    mail = {"sender": "carla@client.example", "subject": "the contract", "body": "please call"}
    filed = {"connection_id": firms.mailbox, "external_message_id": "contract", "mail": mail}
    correlation = "550e8400-e29b-41d4-a716-446655440000"

    for _ in range(2):
        await file_mail.call(filed, tenant_id=LAWYERS, correlation_id=correlation)

    assert await firms.count("mails") == await firms.count("forge_jobs") == 1


async def test_a_mail_that_cannot_be_filed_has_no_notification(firms: Firms) -> None:
    mail = {"sender": "carla@client.example", "subject": "the contract", "body": "please call"}
    filed = {"connection_id": firms.theirs, "external_message_id": "contract", "mail": mail}

    with pytest.raises(Rejected, match=f"Connection {firms.theirs} does not exist"):
        await file_mail.call(filed, tenant_id=LAWYERS)
    # The mail is filed, but the notification is rejected: it has no reference.
    with pytest.raises(InvalidPayload, match="correlation_id"):
        await file_mail.call(filed, tenant_id=ACCOUNTANTS)

    assert await firms.count("mails") == await firms.count("forge_jobs") == 0


def test_a_truncated_mail_is_parsed_or_rejected() -> None:
    whole = (
        b"From: Carla <carla@client.example>\r\nSubject: =?utf-8?q?gr=C3=BCn?=\r\n"
        b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: base64\r\n\r\nR3LDvMOfZQ==\r\n"
    )

    for end in range(len(whole)):
        with suppress(MalformedMail):
            assert isinstance(read(whole[:end]), Mail)

    assert read(b"From: \0\xff@b.c\r\n\r\n\0\xff").body.isprintable()
    assert read(whole) == Mail("Carla <carla@client.example>", "grün", "Grüße")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        NO_MAIL,
        b"Subject: nobody\r\n\r\nsent this",
        b"From: a@b.c\r\nContent-Type: image/png\r\n\r\nabc",
        b"From: a@b.c\r\nContent-Type: text/plain; charset=klingon\r\n\r\nqapla",
    ],
)
def test_an_invalid_mail_is_rejected(raw: bytes) -> None:
    with pytest.raises(MalformedMail):
        read(raw)


def test_a_key_names_the_connection_and_the_mail() -> None:
    assert mail_key(456, "msg_789") == "email_fetch_conn_456_msg_msg_789"


def _event(number: int) -> dict[str, Any]:
    starts_at = f"2026-03-{number:02}T09:00:00Z"
    return {"id": f"event-{number}", "title": f"Hearing {number}", "starts_at": starts_at}


def _waited(failed: Any, job: Any) -> timedelta:
    return _moment(job["started_at"]) - _moment(failed["ended_at"])


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
