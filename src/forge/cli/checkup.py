"""The check-up behind `forge doctor`: one function per question, each answering with findings."""

from datetime import UTC, datetime

from forge.app import Forge
from forge.cli.check_callers import check_api_rights, check_callers
from forge.cli.check_rights import check_rights
from forge.cli.check_tables import check_tables
from forge.cli.check_work import check_work
from forge.cli.finding import Finding, ok, problem, warning
from forge.core.errors import DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.store import doctor
from forge.store.database import Database

OLDEST_SUPPORTED = 150_000
LARGEST_CLOCK_DIFFERENCE = 2.0


async def check_up(app: Forge) -> list[Finding]:
    """Ask everything that can be asked; what cannot be answered is a problem itself."""
    findings: list[Finding] = []
    try:
        database = await (await app.session()).database()
        await _ask(app, database, findings)
    except (DatabaseUnavailable, SchemaMissing, StatementRefused) as error:
        findings.append(problem("database", *_split(str(error))))
    return findings


async def _ask(app: Forge, database: Database, findings: list[Finding]) -> None:
    findings += await _server(database)
    missing = await doctor.missing_migrations(database)
    findings.append(_migrations([str(step) for step in missing]))
    if missing:
        return  # the rest asks tables that may not be there
    findings.append(await _grants(database))
    findings += await check_rights(database, is_embedded=app.is_embedded)
    findings.append(await check_callers(database))
    if app.config.auth.is_configured and app.config.server.database_url is None:
        findings.append(await check_api_rights(database))
    findings += await check_tables(database, app.config.retention)
    findings += await check_work(app, database)


async def _server(database: Database) -> list[Finding]:
    before = datetime.now(UTC)
    found = await database.run(doctor.server())
    after = datetime.now(UTC)
    findings = [
        ok("database", f"{found['database']} as {found['role']}")
        if not found["is_replica"]
        else problem("database", "it is a read-only replica", "name the primary in the URL"),
        ok("version", f"PostgreSQL {found['version_text']}")
        if found["version"] >= OLDEST_SUPPORTED
        else problem("version", f"PostgreSQL {found['version_text']}", "upgrade to 15 or later"),
        _clock((found["clock"] - before - (after - before) / 2).total_seconds()),
    ]
    if not found["fsync"]:
        findings.append(warning("durability", "fsync is off", "set fsync = on, or lose jobs"))
    if not found["synchronous_commit"]:
        advice = "set synchronous_commit = on, or a crash may forget the last dispatches"
        findings.append(warning("durability", "synchronous_commit is off", advice))
    if not found["autovacuum"]:
        findings.append(problem("vacuum", "autovacuum is off", "set autovacuum = on"))
    if not found["sees_all_sessions"]:
        advice = "grant pg_read_all_stats to this role to see those of others"
        findings.append(warning("snapshots", "only this role's own sessions are seen", advice))
    return findings


def _clock(difference: float) -> Finding:
    if abs(difference) <= LARGEST_CLOCK_DIFFERENCE:
        return ok("clock", f"{abs(difference):.1f} s apart from the database's")
    side = "ahead of" if difference > 0 else "behind"
    advice = "set both by NTP: times that an app computes mean the wrong moment"
    return warning("clock", f"the database is {abs(difference):.1f} s {side} this host", advice)


def _migrations(missing: list[str]) -> Finding:
    if missing:
        return problem("migrations", f"missing: {', '.join(missing)}", "run `forge migrate`")
    return ok("migrations", "all applied")


async def _grants(database: Database) -> Finding:
    found = await database.run(doctor.grants())
    if not found["may_read"]:
        advice = "run `forge migrate --roles` as the owner, and grant forge_api to this role"
        return problem("grants", "this role may not read jobs", advice)
    if found["may_move"] and found["may_work"]:
        return ok("grants", "this role may dispatch, run and move jobs")
    if found["may_dispatch"]:
        return ok("grants", "this role may dispatch and read jobs, as forge_api; not run them")
    advice = "grant forge_api or forge_worker to it if it should do more"
    return warning("grants", "this role may only read jobs", advice)


def _split(message: str) -> tuple[str, str]:
    """Part an error into what is wrong and what to do, which its last clause says."""
    what, _, advice = message.rpartition("; ")
    return (what, advice) if what else (message, "see the server's log")
