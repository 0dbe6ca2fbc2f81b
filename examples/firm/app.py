"""The jobs of the firms: fetch mail, sync calendars, send notifications."""

from examples.firm import calendars, office
from examples.firm.connections import connection_of
from examples.firm.mail import Mail, MalformedMail, fetch
from pydantic import BaseModel

from forge import Forge, JobContext, MutationContext, Rejected

NEW_MAIL = """
    insert into mails (connection_id, external_message_id, tenant_id, sender, subject, body)
    select id, $3, tenant_id, $4, $5, $6 from connections where id = $1 and tenant_id = $2
    on conflict (connection_id, external_message_id) do update set subject = excluded.subject
    returning true
"""
NEW_NOTICE = """
    insert into notices (tenant_id, text)
    select tenant_id, 'mail from ' || sender || ': ' || subject from mails
    where connection_id = $1 and external_message_id = $2 and tenant_id = $3
"""

app = Forge()
app.register(*office.JOBS)
# Another attempt would get the same bytes.
app.classify(MalformedMail, "non_retryable")


class Message(BaseModel, extra="allow"):
    """A mail at the provider. Extra fields are allowed, but the payload rules apply to them."""

    connection_id: int
    external_message_id: str


class Calendar(BaseModel, extra="allow"):
    """A calendar to sync."""

    connection_id: int


@app.job(category="ingestion", requires=["connection_id", "external_message_id"], timeout="2m")
async def email_ingestion_fetch(ctx: JobContext, message: Message) -> int:
    """Fetch a mail and file it. Returns the length of its body, not the content."""
    connection = await connection_of(ctx.db, ctx.tenant_id, message.connection_id)
    mail = await fetch(ctx.http, connection, message.external_message_id)
    await file_mail.call(
        {
            "connection_id": connection.id,
            "external_message_id": message.external_message_id,
            "mail": mail._asdict(),
        },
        tenant_id=ctx.tenant_id,
        correlation_id=ctx.correlation_id,
    )
    return len(mail.body)


@app.mutation(role="staff")
async def file_mail(
    ctx: MutationContext, connection_id: int, external_message_id: str, mail: Mail
) -> None:
    """Store a mail and dispatch its notification in one transaction. Idempotent."""
    where = (connection_id, ctx.tenant_id, external_message_id)
    if not await ctx.db.fetchval(NEW_MAIL, *where, *mail):
        raise Rejected(f"Connection {connection_id} does not exist.", status=404)
    await ctx.dispatch_job(
        notify,
        {"connection_id": connection_id, "external_message_id": external_message_id},
        idempotency_key=f"notify_conn_{connection_id}_msg_{external_message_id}",
    )


@app.job(category="notifications", requires=["connection_id", "external_message_id"])
async def notify(ctx: JobContext, message: Message) -> None:
    """Notify the firm of a mail exactly once: the notice and the completion commit together."""
    async with ctx.complete_in_transaction() as conn:
        where = (message.connection_id, message.external_message_id, ctx.tenant_id)
        await conn.execute(NEW_NOTICE, *where)


@app.job(category="sync", requires=["connection_id"], timeout="5m")
async def calendar_sync(ctx: JobContext, calendar: Calendar) -> int:
    """Copy a calendar page by page. An interrupted attempt resumes at its checkpoint."""
    connection = await connection_of(ctx.db, ctx.tenant_id, calendar.connection_id)
    done = ctx.checkpoint or {"next_page": 1, "kept": 0}
    while done["next_page"] is not None:
        page = await calendars.pull(ctx.http, connection, done["next_page"])
        await calendars.keep(ctx.db, connection, ctx.tenant_id, page)
        done = {"next_page": page.next_page, "kept": done["kept"] + len(page.events)}
        ctx.checkpoint = done
    return int(done["kept"])
