"""Every check of an installation, each a function that returns findings."""

from collections.abc import Container
from datetime import UTC, datetime

from forge.core.errors import DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.core.finding import Finding, info, ok, problem, warning
from forge.jobs.session import Sessions
from forge.operations.findings.attention import check_attention
from forge.operations.findings.callers import check_api_rights, check_callers
from forge.operations.findings.rights import check_rights
from forge.operations.findings.tables import check_tables
from forge.operations.findings.work import check_work
from forge.operations.workers import Workers
from forge.store import doctor
from forge.store.connection.database import Database

OLDEST_SUPPORTED = 150_000
# Seconds between the clocks of this host and of the database.
MAX_CLOCK_DIFFERENCE = 2.0


class Checkup:
    """All checks of an app's database; `requests` are the built-in types that workers know."""

    def __init__(self, sessions: Sessions, workers: Workers, requests: Container[str]) -> None:
        self._sessions = sessions
        self._workers = workers
        self._requests = requests

    async def run(self) -> list[Finding]:
        """Run all checks; a check that fails to run is a problem itself."""
        findings: list[Finding] = []
        try:
            await self._check(await self._sessions.database(), findings)
        except (DatabaseUnavailable, SchemaMissing, StatementRefused) as error:
            findings.append(problem("unavailable_database", *_split(str(error))))
        return findings

    async def _check(self, database: Database, findings: list[Finding]) -> None:
        findings += await _server(database)
        missing = await doctor.missing_migrations(database)
        findings.append(_migrations([str(step) for step in missing]))
        if missing:
            return  # the remaining checks read tables that may not exist
        config = self._sessions.config
        is_embedded = self._sessions.configured_url is None
        findings.append(await _grants(database))
        findings += await check_rights(database, is_embedded=is_embedded)
        findings.append(await check_callers(database))
        is_server = config.auth.is_configured and config.server.database_url is None
        if is_server and not is_embedded:  # the only role of an embedded server is a superuser
            findings.append(await check_api_rights(database))
        findings += await check_tables(database, config.retention)
        live = [worker for worker in await self._workers.list() if worker.is_alive]
        findings += await check_work(database, config, live, self._requests)
        findings += await check_attention(database, live)


async def _server(database: Database) -> list[Finding]:
    before = datetime.now(UTC)
    found = await database.run(doctor.server())
    after = datetime.now(UTC)
    findings = [
        ok("database", f"{found['database']} as {found['role']}")
        if not found["is_replica"]
        else problem(
            "read_only_database", "the database is a read-only replica", "use the primary's URL"
        ),
        ok("version", f"PostgreSQL {found['version_text']}")
        if found["version"] >= OLDEST_SUPPORTED
        else problem(
            "old_version",
            f"PostgreSQL {found['version_text']} is too old",
            "upgrade to 15 or later",
        ),
        _clock((found["clock"] - before - (after - before) / 2).total_seconds()),
    ]
    if not found["fsync"]:
        findings.append(
            warning("fsync_off", "fsync is off", "set fsync = on; otherwise a crash loses jobs")
        )
    if not found["synchronous_commit"]:
        advice = "set synchronous_commit = on; otherwise a crash may lose the last dispatches"
        findings.append(warning("synchronous_commit_off", "synchronous_commit is off", advice))
    if not found["autovacuum"]:
        findings.append(problem("autovacuum_off", "autovacuum is off", "set autovacuum = on"))
    if not found["sees_all_sessions"]:
        advice = "grant pg_read_all_stats to this role to see the sessions of other roles"
        message = "only this role's sessions are visible, so that old snapshots may go unnoticed"
        findings.append(info("hidden_sessions", message, advice))
    return findings


def _clock(difference: float) -> Finding:
    if abs(difference) <= MAX_CLOCK_DIFFERENCE:
        return ok("clock", f"{abs(difference):.1f} s apart from the database's clock")
    side = "ahead of" if difference > 0 else "behind"
    advice = "synchronise both with NTP: times that an app computes are off by this much"
    message = f"the database's clock is {abs(difference):.1f} s {side} that of this host"
    return warning("clocks_differ", message, advice, seconds=round(difference, 1))


def _migrations(missing: list[str]) -> Finding:
    if missing:
        message = f"migrations are missing: {', '.join(missing)}"
        return problem("missing_migrations", message, "run `forge migrate`", migrations=missing)
    return ok("migrations", "all migrations are applied")


async def _grants(database: Database) -> Finding:
    found = await database.run(doctor.grants())
    if not found["may_read"]:
        advice = "run `forge migrate --roles` as the owner, and grant forge_api to this role"
        return problem("missing_grants", "this role cannot read jobs", advice)
    if found["may_move"] and found["may_work"]:
        return ok("grants", "this role can dispatch, run and move jobs")
    if found["may_dispatch"]:
        return ok(
            "grants", "this role can dispatch and read jobs, like forge_api; it cannot run them"
        )
    advice = "grant forge_api or forge_worker to this role if it dispatches or runs jobs"
    return warning("missing_grants", "this role can only read jobs", advice)


def _split(message: str) -> tuple[str, str]:
    """Split an error into what happened and what to do, its last clause."""
    what, _, advice = message.rpartition("; ")
    return (what, advice) if what else (message, "see the server's log")
