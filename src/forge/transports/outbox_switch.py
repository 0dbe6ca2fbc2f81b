"""Whether jobs leave rows in the outbox: on for SQS, off for PostgreSQL."""

from forge.config.transport import TransportConfig
from forge.core.errors import StatementRefused
from forge.core.events import Events
from forge.store import outbox
from forge.store.connection.database import Database


async def switch(database: Database, transport: TransportConfig) -> str | None:
    """Set the outbox as the transport needs it; return what changed. Requires the tables' owner."""
    wanted = transport.queues is not None
    if await database.run(outbox.is_enabled()) == wanted:
        return None
    if wanted:
        await database.run(outbox.enable())
        return "the outbox is on: each waiting job leaves a row for its message"
    await database.run(outbox.disable())
    await database.run(outbox.clear())
    return "the outbox is off and empty: workers look for jobs themselves"


async def switch_on(database: Database, events: Events) -> bool:
    """Switch the outbox on for a worker; without the right to, the sweeper finds the jobs later."""
    if await database.run(outbox.is_enabled()):
        return True
    try:
        await database.run(outbox.enable())
        return True
    except StatementRefused:
        events.notice(
            "warning",
            "jobs leave no rows in the outbox, so that their messages are some seconds late; run "
            "`forge migrate` with this configuration, as the owner of the tables",
        )
        return False
