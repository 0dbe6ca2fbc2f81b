"""The dead letter scenes: who can see dead letters, and what managers do with them."""

from typing import Any, NamedTuple

from examples.firm.api_client import ApiClient, ApiClients, mail_key
from examples.firm.connections import connect
from examples.firm.local_provider import Provider
from examples.firm.output import print_result, say
from examples.firm.people import LAWYERS

DLQ = "/api/jobs/admin/dlq"
REVOKED, REVOKED_TOO = "revoked", "revoked-too"


class Failed(NamedTuple):
    """The connections whose mails failed permanently."""

    mailbox: int
    revoked: int
    theirs: int


async def show_review(db: Any, provider: Provider, clients: ApiClients, failed: Failed) -> None:
    will = await find_letter(clients.max, mail_key(failed.revoked, "will"))
    lease = await find_letter(clients.max, mail_key(failed.revoked, "lease"))
    scan = await find_letter(clients.max, mail_key(failed.mailbox, "scan"))
    await show_access(clients, will)
    await show_causes(clients.max, will)
    reconnected = await connect(db, LAWYERS, provider.address, provider.open())
    await show_edit(clients.max, will, reconnected)
    await reprocess(clients.max, lease, "reconnected", connection_id=reconnected)
    await show_discard(clients.max, scan)
    provider.tokens.add(REVOKED_TOO)
    payroll = await find_letter(clients.tom, mail_key(failed.theirs, "payroll"))
    await show_many(clients.tom, payroll)
    for client, dlq_id in ((clients.max, will), (clients.max, scan), (clients.tom, payroll)):
        await show_audit(client, dlq_id)
    for client in (clients.max, clients.tom):
        await show_statistics(client)


async def show_access(clients: ApiClients, will: int) -> None:
    say(f"\nDead letter {will} belongs to the lawyers. Who else can see it?")
    await clients.ann.get(f"{DLQ}/{will}/", expect=403)
    say("    Ann, a user of the same firm: 403")
    await clients.tom.get(f"{DLQ}/{will}/", expect=404)
    await clients.tom.post(f"{DLQ}/{will}/reprocess/", {"notes": "not mine"}, expect=404)
    await clients.tom.post(f"{DLQ}/{will}/discard/", {"notes": "not mine"}, expect=404)
    say("    Tom, the other firm's manager: 404 for reading, reprocessing and discarding")


async def show_causes(max: ApiClient, will: int) -> None:
    say("Max, the lawyers' manager, sees dead letters grouped by cause:")
    for group in (await max.get(f"{DLQ}/groups/"))["groups"]:
        say(f"    {group['letters']} × {group['exception']} in {group['place']}")
    letter = await max.get(f"{DLQ}/{will}/")
    say(f"    {will}: {letter['error_message']}")
    say(f"    {will}: {letter['payload']}")


async def show_edit(max: ApiClient, will: int, reconnected: int) -> None:
    say(f"The mailbox has the new id {reconnected}. Max edits the payload, and the rules apply:")
    letter = await max.get(f"{DLQ}/{will}/")
    secret = {**letter["payload"], "connection_id": reconnected, "access_token": "t-4711"}
    request = {"notes": "reconnected", "payload": secret}
    refused = await max.post(f"{DLQ}/{will}/reprocess/", request, expect=422)
    for fault in refused["errors"]:
        say(f"    {fault['path']}: {fault['message']}")
    await reprocess(max, will, "reconnected", connection_id=reconnected)
    await max.post(f"{DLQ}/{will}/reprocess/", {"notes": "once more"}, expect=409)
    say(f"    {will}: reprocessing it again returns 409")


async def show_discard(max: ApiClient, scan: int) -> None:
    say("Max discards the invalid mail, which requires a reason:")
    await max.post(f"{DLQ}/{scan}/discard/", {"notes": " "}, expect=422)
    await max.post(f"{DLQ}/{scan}/discard/", {"notes": "the client sent it again, on paper"})
    say(f"    {scan}: {(await max.get(f'{DLQ}/{scan}/'))['status']}")


async def show_many(tom: ApiClient, payroll: int) -> None:
    say("\nThe accountants' mailbox has access again. Tom reprocesses the whole group:")
    cause = {"fingerprint": (await tom.get(f"{DLQ}/{payroll}/"))["fingerprint"]}
    plan = await tom.post(f"{DLQ}/reprocess/", {**cause, "dry_run": True})
    say(f"    dry run: {plan['letters']} dead letters")
    request = {**cause, "rate": 100, "canary": 1, "notes": "the provider grants access again"}
    made = await tom.post(f"{DLQ}/reprocess/", request, expect=202)
    report = (await tom.wait_for(made["job_id"]))["output"]
    say(f"    one canary first, then the rest: {report['reprocessed']} reprocessed")
    done = await tom.get(f"{DLQ}/", status="reprocessed", limit=plan["letters"], **cause)
    for letter in done["dlq_items"]:
        await print_result(tom, str(letter["dlq_id"]), letter["new_job_id"])


async def show_audit(client: ApiClient, dlq_id: int) -> None:
    say(f"\nWho did what with dead letter {dlq_id}, and why:")
    for event in reversed((await client.get("/_api/audit", dlq_id=dlq_id))["items"]):
        say(f"    {event['created_at'][11:19]} {event['actor']} {event['event']}: {event['notes']}")


async def show_statistics(client: ApiClient) -> None:
    say(f"\nStatistics for {client.person.name}'s firm, over all runs:")
    for what, path in (("jobs", "queue"), ("dead letters", "dlq")):
        counts = await client.get(f"/api/jobs/admin/{path}/statistics/")
        say(f"    {counts['total_count']} {what}: {listed(counts['by_status'])}")
        say(f"        {listed(counts['by_category'])}; {listed(counts['by_error_class'])}")


def listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


async def reprocess(client: ApiClient, dlq_id: int, notes: str, **edits: Any) -> None:
    """Reprocess a dead letter, with edits if given, and wait until the new job is final."""
    request: dict[str, Any] = {"notes": notes}
    if edits:
        request["payload"] = {**(await client.get(f"{DLQ}/{dlq_id}/"))["payload"], **edits}
    made = await client.post(f"{DLQ}/{dlq_id}/reprocess/", request)
    say(f"    {dlq_id}: its new key is {made['new_idempotency_key']}")
    await print_result(client, str(dlq_id), made["new_job_id"])


async def discard_leftovers(client: ApiClient) -> None:
    """Discard dead letters of an interrupted run, whose provider no longer exists."""
    for letter in (await client.get(f"{DLQ}/", status="pending_review", limit=200))["dlq_items"]:
        notes = {"notes": "left by an interrupted run"}
        await client.post(f"{DLQ}/{letter['dlq_id']}/discard/", notes)


async def find_letter(client: ApiClient, key: str) -> int:
    """Return the id of the dead letter with this idempotency key."""
    page = await client.get(f"{DLQ}/", status="pending_review")
    for letter in page["dlq_items"]:
        if letter["idempotency_key"] == key:
            return int(letter["dlq_id"])
    raise RuntimeError(f"{client.person.name} has no dead letter with the key {key}")
