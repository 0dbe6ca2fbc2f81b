"""The scenes of the demonstration: rules, retries, rate limits and permanent failures."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from examples.firm.api_client import ApiClient, ApiClients
from examples.firm.connections import connect
from examples.firm.local_provider import NO_MAIL, Provider
from examples.firm.output import print_result, say
from examples.firm.people import ACCOUNTANTS, LAWYERS
from examples.firm.review import (
    DLQ,
    REVOKED,
    REVOKED_TOO,
    Failed,
    discard_leftovers,
    find_letter,
    show_review,
)

EVENTS_PER_PAGE, PAGES = 2, 3
# The lawyers' mails that are stored at the end.
FILED = ("contract", "deadline", "invoice", "will", "lease")
NOTICES = """
    select text from notices
    where tenant_id = $1 and created_at >= $2 order by id
"""

OFFICE: dict[str, dict[str, str]] = {
    "open_period": {"recurrence_id": "retainer-7", "period_id": "2026-04"},
    "run_step": {"execution_id": "case-12", "step_id": "conflict-check"},
    "export_notices": {},
    "delete_old_notices": {},
}


async def show_all(db: Any, provider: Provider, clients: ApiClients) -> None:
    """Run every scene, on new connections."""
    for manager in (clients.max, clients.tom):
        await discard_leftovers(manager)
    started = await db.fetchval("select now()")
    mailbox = await connect(db, LAWYERS, provider.address, provider.open())
    await show_rules(clients.ann, mailbox)
    await show_ingestion(provider, clients.ann, mailbox)
    await show_sync(provider, clients.ann, mailbox)
    await show_categories(clients.ann)
    await show_exhausted(clients)
    failed = await show_failures(db, provider, clients, mailbox)
    await show_review(db, provider, clients, failed)
    await show_notices(db, clients.max, started)


async def show_rules(ann: ApiClient, mailbox: int) -> None:
    say("Ann dispatches a job with a mail body and a token in the payload. The API rejects it:")
    args = {
        "connection_id": mailbox,
        "external_message_id": "contract",
        "email_body": "Dear counsel, …",
        "source": {"access_token": "t-4711"},
    }
    refused = await ann.dispatch("email_ingestion_fetch", "with_secrets", args, expect=422)
    for fault in refused["errors"]:
        say(f"    {fault['path']}: {fault['message']}")
    say("She omits the correlation id and the idempotency key:")
    args = {"args": {"connection_id": mailbox}}
    refused = await ann.post("/_api/jobs/calendar_sync/dispatch", args, expect=422)
    for fault in refused["errors"]:
        say(f"    {fault['path']}: {fault['message']}")


async def show_ingestion(provider: Provider, ann: ApiClient, mailbox: int) -> None:
    say("\nAnn fetches three mails, one of them twice. The provider returns some errors:")
    provider.post("contract", "carla@client.example", "the contract")
    provider.post("deadline", "court@state.example", "a deadline")
    provider.post("invoice", "dora@client.example", "your invoice")
    provider.troubles = {
        "deadline": [(503, {})],
        "invoice": [(429, {"Retry-After": "1"})],
    }
    asked = {name: await ann.fetch_mail(mailbox, name) for name in provider.mails}
    again = await ann.fetch_mail(mailbox, "contract")
    same = again["deduplicated"] and again["job_id"] == asked["contract"]["job_id"]
    say(f"    contract, the second time: {'the same job' if same else 'ANOTHER JOB'}")
    for name, made in asked.items():
        await print_result(ann, name, made["job_id"])


async def show_sync(provider: Provider, ann: ApiClient, calendar: int) -> None:
    say("\nAnn syncs a calendar of three pages. The provider limits requests at the second page:")
    provider.pages = [
        [_event(page * EVENTS_PER_PAGE + index) for index in range(EVENTS_PER_PAGE)]
        for page in range(PAGES)
    ]
    provider.troubles = {"page 2": [(429, {"Retry-After": "1"})]}
    args = {"connection_id": calendar}
    made = await ann.dispatch("calendar_sync", f"calendar_sync_conn_{calendar}", args)
    job = await print_result(ann, "calendar", made["job_id"])
    asked = provider.answers["page 1", 200]
    say(f"    {job['output']} appointments; requests for the first page: {asked}")


async def show_failures(db: Any, provider: Provider, clients: ApiClients, mailbox: int) -> Failed:
    say("\nTwo mailboxes were revoked, and one mail is invalid. These jobs are not retried:")
    revoked = await connect(db, LAWYERS, provider.address, REVOKED)
    theirs = await connect(db, ACCOUNTANTS, provider.address, REVOKED_TOO)
    for name in ("will", "lease", "payroll", "taxes"):
        provider.post(name, f"{name}@client.example", f"the {name}")
    provider.mails["scan"] = NO_MAIL
    asked = [
        (clients.ann, revoked, "will"),
        (clients.ann, revoked, "lease"),
        (clients.ann, mailbox, "scan"),
        (clients.bea, theirs, "payroll"),
        (clients.bea, theirs, "taxes"),
    ]
    for client, connection, name in asked:
        made = await client.fetch_mail(connection, name)
        await print_result(client, name, made["job_id"])
    return Failed(mailbox, revoked, theirs)


async def show_notices(db: Any, max: ApiClient, started: datetime) -> None:
    say("\nNotifications to the lawyers, each dispatched with the mail that it is about:")
    queue = await max.get("/api/jobs/admin/queue/", job_type="notify", limit=len(FILED))
    for job in queue["jobs"]:
        await max.wait_for(job["job_id"])
    for row in await db.fetch(NOTICES, LAWYERS, started):
        say(f"    {row['text']}")


async def show_categories(ann: ApiClient) -> None:
    say("\nThe firm has jobs of every category. These are the remaining ones:")
    for job_type, args in OFFICE.items():
        made = await ann.dispatch(job_type, f"{job_type}_{uuid4()}", args)
        job = await ann.wait_for(made["job_id"])
        say(f"    {job['category']}: {job_type} {job['status']}, {job['output']!r}")


async def show_exhausted(clients: ApiClients) -> None:
    say("\nThe document converter is unavailable until all attempts are used:")
    key = f"convert_{uuid4()}"
    made = await clients.ann.dispatch("convert_document", key, {"document_id": "DOC-17"})
    job = await print_result(clients.ann, "DOC-17", made["job_id"])
    say(f"    {job['category']}: {job['attempts']} of {job['max_attempts']} attempts were used")
    letter = await find_letter(clients.max, key)
    notes = {"notes": "converted by hand"}
    await clients.max.post(f"{DLQ}/{letter}/discard/", notes)
    say(f"    Max discards dead letter {letter}: {notes['notes']}")


def _event(number: int) -> dict[str, Any]:
    starts = f"2026-03-{number + 1:02}T09:00:00Z"
    return {"id": f"event-{number}", "title": f"Hearing {number}", "starts_at": starts}
