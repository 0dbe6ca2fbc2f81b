"""Whether the database accepts the callers that this process names."""

import asyncio
import logging

from forge.app import Forge
from forge.cli.finding import Finding, ok, problem, warning
from forge.core.errors import ConfigError, DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.store import doctor
from forge.store.database import Database
from forge.store.roles import API_ROLE
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


async def check_api_rights(database: Database) -> Finding:
    """Say whether a server with this login has more rights than it needs."""
    found = await database.run(doctor.api_rights())
    if found["may_take_role"] or not found["may_move"]:
        role = API_ROLE if found["may_take_role"] else found["role"]
        return ok("server", f"its own statements run as {role}, mutations as {found['login']}")
    return warning(
        "server",
        f"the API runs as {found['role']}, which may do more with jobs than it needs",
        "run `forge migrate --roles` as the owner, and grant forge_api to this login or name one "
        "that has it in [server] database_url",
    )


async def tell_rights(app: Forge) -> None:
    """Log as whom the server acts; a database that is away is not waited for."""
    database = await (await app.session()).database()
    try:
        async with asyncio.timeout(PATIENCE):
            finding = await check_api_rights(database)
    except (TimeoutError, DatabaseUnavailable, SchemaMissing, StatementRefused):
        return
    if finding.level == "ok":
        log.info("rights: %s", finding.message)
    else:
        log.warning("rights: %s; %s", finding.message, finding.advice)


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
