"""What the demonstration shows of a day's work: rules, retries, limits, and what fails for good."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from examples.firm.connections import connect
from examples.firm.desk import Desk, Desks
from examples.firm.local_provider import NO_MAIL, Provider
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
from examples.firm.telling import say, tell_end

EVENTS_PER_PAGE, PAGES = 2, 3
# The lawyers' mails that are there in the end.
FILED = ("contract", "deadline", "invoice", "will", "lease")
NOTICES = """
    select text from notices
    where tenant_id = $1 and created_at >= $2 order by id
"""

OFFICE: dict[str, dict[str, str]] = {
    "open_period": {"recurrence_id": "retainer-7", "period_id": "2026-04"},
    "run_step": {"execution_id": "case-12", "step_id": "conflict-check"},
    "export_notices": {},
    "forget_notices": {},
}


async def show_all(db: Any, provider: Provider, desks: Desks) -> None:
    """Run every scene, on connections that no run before had."""
    for manager in (desks.max, desks.tom):
        await discard_leftovers(manager)
    began = await db.fetchval("select now()")
    mailbox = await connect(db, LAWYERS, provider.address, provider.open())
    await show_rules(desks.ann, mailbox)
    await show_ingestion(provider, desks.ann, mailbox)
    await show_sync(provider, desks.ann, mailbox)
    await show_categories(desks.ann)
    await show_exhausted(desks)
    failed = await show_failures(db, provider, desks, mailbox)
    await show_review(db, provider, desks, failed)
    await show_notices(db, desks.max, began)


async def show_rules(ann: Desk, mailbox: int) -> None:
    say("Ann asks for a mail with its text and a token in the payload. That is refused:")
    args = {
        "connection_id": mailbox,
        "external_message_id": "contract",
        "email_body": "Dear counsel, …",
        "source": {"access_token": "t-4711"},
    }
    refused = await ann.ask("email_ingestion_fetch", "with_secrets", args, expect=422)
    for fault in refused["errors"]:
        say(f"    {fault['path']}: {fault['message']}")
    say("She does not say what the job belongs to, nor how to tell two requests apart:")
    args = {"args": {"connection_id": mailbox}}
    refused = await ann.post("/_api/jobs/calendar_sync/dispatch", args, expect=422)
    for fault in refused["errors"]:
        say(f"    {fault['path']}: {fault['message']}")


async def show_ingestion(provider: Provider, ann: Desk, mailbox: int) -> None:
    say("\nAnn asks for three mails, for one of them twice. The provider has its troubles:")
    provider.post("contract", "carla@client.example", "the contract")
    provider.post("deadline", "court@state.example", "a deadline")
    provider.post("invoice", "dora@client.example", "your invoice")
    provider.troubles = {
        "deadline": [(503, {})],
        "invoice": [(429, {"Retry-After": "1"})],
    }
    asked = {name: await ann.ask_for_mail(mailbox, name) for name in provider.mails}
    again = await ann.ask_for_mail(mailbox, "contract")
    same = again["deduplicated"] and again["job_id"] == asked["contract"]["job_id"]
    say(f"    contract, the second time: {'the same job' if same else 'ANOTHER JOB'}")
    for name, made in asked.items():
        await tell_end(ann, name, made["job_id"])


async def show_sync(provider: Provider, ann: Desk, calendar: int) -> None:
    say("\nAnn follows a calendar of three pages. Before the second one it asks us to wait:")
    provider.pages = [
        [_event(page * EVENTS_PER_PAGE + place) for place in range(EVENTS_PER_PAGE)]
        for page in range(PAGES)
    ]
    provider.troubles = {"page 2": [(429, {"Retry-After": "1"})]}
    args = {"connection_id": calendar}
    made = await ann.ask("calendar_sync", f"calendar_sync_conn_{calendar}", args)
    job = await tell_end(ann, "calendar", made["job_id"])
    asked = provider.answers["page 1", 200]
    say(f"    {job['output']} appointments; requests for the first page: {asked}")


async def show_failures(db: Any, provider: Provider, desks: Desks, mailbox: int) -> Failed:
    say("\nTwo mailboxes were revoked, and one mail is none. Nobody tries that again:")
    revoked = await connect(db, LAWYERS, provider.address, REVOKED)
    theirs = await connect(db, ACCOUNTANTS, provider.address, REVOKED_TOO)
    for name in ("will", "lease", "payroll", "taxes"):
        provider.post(name, f"{name}@client.example", f"the {name}")
    provider.mails["scan"] = NO_MAIL
    asked = [
        (desks.ann, revoked, "will"),
        (desks.ann, revoked, "lease"),
        (desks.ann, mailbox, "scan"),
        (desks.bea, theirs, "payroll"),
        (desks.bea, theirs, "taxes"),
    ]
    for desk, connection, name in asked:
        made = await desk.ask_for_mail(connection, name)
        await tell_end(desk, name, made["job_id"])
    return Failed(mailbox, revoked, theirs)


async def show_notices(db: Any, max: Desk, began: datetime) -> None:
    say("\nWhat the lawyers were told of, by jobs that exist only where the mail was filed:")
    queue = await max.get("/api/jobs/admin/queue/", job_type="notify", limit=len(FILED))
    for job in queue["jobs"]:
        await max.ended(job["job_id"])
    for row in await db.fetch(NOTICES, LAWYERS, began):
        say(f"    {row['text']}")


async def show_categories(ann: Desk) -> None:
    say("\nThe firm has jobs of every category; these are the ones not seen yet:")
    for job_type, args in OFFICE.items():
        made = await ann.ask(job_type, f"{job_type}_{uuid4()}", args)
        job = await ann.ended(made["job_id"])
        say(f"    {job['category']}: {job_type} {job['status']}, {job['output']!r}")


async def show_exhausted(desks: Desks) -> None:
    say("\nThe converter of documents is away for longer than a job is tried:")
    key = f"convert_{uuid4()}"
    made = await desks.ann.ask("convert_document", key, {"document_id": "DOC-17"})
    job = await tell_end(desks.ann, "DOC-17", made["job_id"])
    say(f"    {job['category']}: {job['attempts']} of {job['max_attempts']} attempts were used")
    letter = await find_letter(desks.max, key)
    notes = {"notes": "converted by hand"}
    await desks.max.post(f"{DLQ}/{letter}/discard/", notes)
    say(f"    Max discards dead letter {letter}: {notes['notes']}")


def _event(number: int) -> dict[str, Any]:
    starts = f"2026-03-{number + 1:02}T09:00:00Z"
    return {"id": f"event-{number}", "title": f"Hearing {number}", "starts_at": starts}
