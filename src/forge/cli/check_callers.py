"""Whether the database accepts the callers that this process names."""

import asyncio
import logging

from forge.app import Forge
from forge.cli.finding import Finding, ok, problem, warning
from forge.core.errors import ConfigError, DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.store.database import Database
from forge.store.tenant import is_operator, standing

# How long a server that starts waits for the answer of its database, in seconds.
PATIENCE = 3.0

log = logging.getLogger("forge.server")


async def check_callers(database: Database) -> Finding:
    """Say whether row security binds this login, and whether its callers are signed."""
    found = await database.run(standing())
    if not found["is_bound"]:
        return ok("callers", "row security does not bind this role")
    if not found["is_signed"]:
        return warning(
            "callers",
            "they are not signed: row security catches forgotten filters, not injected SQL",
            "set [auth] secret and run `forge migrate --roles` as the owner",
        )
    try:
        await database.run(is_operator())
    except StatementRefused as error:
        advice = "run `forge migrate --roles` as the owner with the [auth] secret of this process"
        return problem("callers", f"the database does not accept them ({error})", advice)
    return ok("callers", "signed, and accepted by the database")


async def see_that_callers_are_accepted(app: Forge) -> None:
    """Refuse to start where no request could succeed; a database that is away is asked later."""
    database = await (await app.session()).database()
    try:
        async with asyncio.timeout(PATIENCE):
            finding = await check_callers(database)
    except (TimeoutError, DatabaseUnavailable, SchemaMissing, StatementRefused):
        return
    if finding.level == "problem":
        raise ConfigError(f"{finding.message}; {finding.advice}")
    if finding.level == "warning":
        log.warning("callers: %s; %s", finding.message, finding.advice)
