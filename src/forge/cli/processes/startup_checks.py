"""What a starting server checks of its login: its rights, and whether its callers are accepted."""

import asyncio
import logging

from forge.app import Forge
from forge.core.errors import ConfigError, DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.operations.findings.callers import check_api_rights, check_callers

# Seconds that a starting server waits for these checks.
STARTUP_TIMEOUT = 3.0

log = logging.getLogger("forge.server")


async def log_api_rights(app: Forge) -> None:
    """Log the role that the server acts as; skip it if the database is unavailable."""
    database = await (await app.session()).database()
    try:
        async with asyncio.timeout(STARTUP_TIMEOUT):
            finding = await check_api_rights(database)
    except (TimeoutError, DatabaseUnavailable, SchemaMissing, StatementRefused):
        return
    if finding.severity == "ok":
        log.info("rights: %s", finding.message)
    else:
        log.warning("rights: %s; %s", finding.message, finding.action)


async def require_accepted_callers(app: Forge) -> None:
    """Raise if every request would fail; skip the check if the database is unavailable."""
    database = await (await app.session()).database()
    try:
        async with asyncio.timeout(STARTUP_TIMEOUT):
            finding = await check_callers(database)
    except (TimeoutError, DatabaseUnavailable, SchemaMissing, StatementRefused):
        return
    if finding.severity == "problem":
        raise ConfigError(f"{finding.message}; {finding.action}")
    if finding.severity == "warning":
        log.warning("callers: %s; %s", finding.message, finding.action)
