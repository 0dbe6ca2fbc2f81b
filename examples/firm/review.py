"""What the demonstration shows of dead letters: who sees them, and what managers do with them."""

from typing import Any, NamedTuple

from examples.firm.connections import connect
from examples.firm.desk import Desk, Desks, mail_key
from examples.firm.local_provider import Provider
from examples.firm.people import LAWYERS
from examples.firm.telling import say, tell_end

DLQ = "/api/jobs/admin/dlq"
REVOKED, REVOKED_TOO = "revoked", "revoked-too"


class Failed(NamedTuple):
    """The connections whose mails failed for good."""

    mailbox: int
    revoked: int
    theirs: int


async def show_review(db: Any, provider: Provider, desks: Desks, failed: Failed) -> None:
    will = await find_letter(desks.max, mail_key(failed.revoked, "will"))
    lease = await find_letter(desks.max, mail_key(failed.revoked, "lease"))
    scan = await find_letter(desks.max, mail_key(failed.mailbox, "scan"))
    await show_walls(desks, will)
    await show_causes(desks.max, will)
    anew = await connect(db, LAWYERS, provider.address, provider.open())
    await show_edit(desks.max, will, anew)
    await reprocess(desks.max, lease, "connected anew", connection_id=anew)
    await show_discard(desks.max, scan)
    provider.tokens.add(REVOKED_TOO)
    payroll = await find_letter(desks.tom, mail_key(failed.theirs, "payroll"))
    await show_many(desks.tom, payroll)
    for desk, dlq_id in ((desks.max, will), (desks.max, scan), (desks.tom, payroll)):
        await show_audit(desk, dlq_id)
    for desk in (desks.max, desks.tom):
        await show_statistics(desk)


async def show_walls(desks: Desks, will: int) -> None:
    say(f"\nDead letter {will} is the lawyers'. Who else can see it?")
    await desks.ann.get(f"{DLQ}/{will}/", expect=403)
    say("    Ann, a user of the same firm: 403")
    await desks.tom.get(f"{DLQ}/{will}/", expect=404)
    await desks.tom.post(f"{DLQ}/{will}/reprocess/", {"notes": "not mine"}, expect=404)
    await desks.tom.post(f"{DLQ}/{will}/discard/", {"notes": "not mine"}, expect=404)
    say("    Tom, the other firm's manager: 404, to look at, to reprocess and to discard")


async def show_causes(max: Desk, will: int) -> None:
    say("Max, the lawyers' manager, sees causes, not lines:")
    for group in (await max.get(f"{DLQ}/groups/"))["groups"]:
        say(f"    {group['letters']} × {group['exception']} in {group['place']}")
    letter = await max.get(f"{DLQ}/{will}/")
    say(f"    {will}: {letter['error_message']}")
    say(f"    {will}: {letter['payload']}")


async def show_edit(max: Desk, will: int, anew: int) -> None:
    say(f"The mailbox was connected anew, as {anew}. Max edits the payload; rules hold there, too:")
    letter = await max.get(f"{DLQ}/{will}/")
    secret = {**letter["payload"], "connection_id": anew, "access_token": "t-4711"}
    wish = {"notes": "connected anew", "payload": secret}
    refused = await max.post(f"{DLQ}/{will}/reprocess/", wish, expect=422)
    for fault in refused["errors"]:
        say(f"    {fault['path']}: {fault['message']}")
    await reprocess(max, will, "connected anew", connection_id=anew)
    await max.post(f"{DLQ}/{will}/reprocess/", {"notes": "once more"}, expect=409)
    say(f"    {will}: once more is refused with 409")


async def show_discard(max: Desk, scan: int) -> None:
    say("The mail that is none is discarded, but not without a reason:")
    await max.post(f"{DLQ}/{scan}/discard/", {"notes": " "}, expect=422)
    await max.post(f"{DLQ}/{scan}/discard/", {"notes": "the client sent it again, on paper"})
    say(f"    {scan}: {(await max.get(f'{DLQ}/{scan}/'))['status']}")


async def show_many(tom: Desk, payroll: int) -> None:
    say("\nThe accountants' mailbox was let in again. Tom has all of that cause done anew:")
    cause = {"fingerprint": (await tom.get(f"{DLQ}/{payroll}/"))["fingerprint"]}
    plan = await tom.post(f"{DLQ}/reprocess/", {**cause, "dry_run": True})
    say(f"    a dry run: {plan['letters']} dead letters")
    wish = {**cause, "rate": 100, "canary": 1, "notes": "the provider lets us in again"}
    made = await tom.post(f"{DLQ}/reprocess/", wish, expect=202)
    report = (await tom.ended(made["job_id"]))["output"]
    say(f"    one of them first, then the rest: {report['reprocessed']} reprocessed")
    done = await tom.get(f"{DLQ}/", status="reprocessed", limit=plan["letters"], **cause)
    for letter in done["dlq_items"]:
        await tell_end(tom, str(letter["dlq_id"]), letter["new_job_id"])


async def show_audit(desk: Desk, dlq_id: int) -> None:
    say(f"\nWho did what with dead letter {dlq_id}, and why:")
    for event in reversed((await desk.get("/_api/audit", dlq_id=dlq_id))["items"]):
        say(f"    {event['created_at'][11:19]} {event['actor']} {event['event']}: {event['notes']}")


async def show_statistics(desk: Desk) -> None:
    say(f"\nWhat {desk.person.name} sees of the firm, all runs together:")
    for what, path in (("jobs", "queue"), ("dead letters", "dlq")):
        counts = await desk.get(f"/api/jobs/admin/{path}/statistics/")
        say(f"    {counts['total_count']} {what}: {listed(counts['by_status'])}")
        say(f"        {listed(counts['by_category'])}; {listed(counts['by_error_class'])}")


def listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


async def reprocess(desk: Desk, dlq_id: int, notes: str, **edits: Any) -> None:
    """Make a new job of a dead letter, changed where there are edits, and wait for its end."""
    wish: dict[str, Any] = {"notes": notes}
    if edits:
        wish["payload"] = {**(await desk.get(f"{DLQ}/{dlq_id}/"))["payload"], **edits}
    made = await desk.post(f"{DLQ}/{dlq_id}/reprocess/", wish)
    say(f"    {dlq_id}: its new key is {made['new_idempotency_key']}")
    await tell_end(desk, str(dlq_id), made["new_job_id"])


async def discard_leftovers(desk: Desk) -> None:
    """Close what a run that was interrupted has left: its provider is gone."""
    for letter in (await desk.get(f"{DLQ}/", status="pending_review", limit=200))["dlq_items"]:
        notes = {"notes": "left by a run that was interrupted"}
        await desk.post(f"{DLQ}/{letter['dlq_id']}/discard/", notes)


async def find_letter(desk: Desk, key: str) -> int:
    """Return the id of the dead letter of a job, which its key tells."""
    page = await desk.get(f"{DLQ}/", status="pending_review")
    for letter in page["dlq_items"]:
        if letter["idempotency_key"] == key:
            return int(letter["dlq_id"])
    raise RuntimeError(f"{desk.person.name} has no dead letter of {key}")
