"""`forge migrate`: applies missing migrations and registers job types."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from forge.cli.options import json_option, project_options
from forge.core.errors import InvalidValue

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.finding import Finding


class MigrationReport(NamedTuple):
    """What `forge migrate` did."""

    applied: list[str]
    transport: str | None
    waiting_index: str | None
    roles: list[str]
    # None unless --roles was given.
    signs_callers: bool | None
    job_types: list[str]
    warnings: "list[Finding]"


@click.command()
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL and apply nothing.")
@click.option("--roles", is_flag=True, help="Also create the roles forge_api and forge_worker.")
@json_option
@project_options
def migrate(
    app_option: str | None, config_path: Path | None, as_sql: bool, roles: bool, as_json: bool
) -> None:
    """Apply missing migrations, and register the app's job types and schedules."""
    from forge.cli.output import print_findings, print_json
    from forge.cli.project import find_app_or_database, run
    from forge.store import migrate as migrations
    from forge.store.embedded import open_shared
    from forge.store.roles import roles_as_sql

    if as_sql:
        if as_json:
            raise InvalidValue("--sql and --json cannot be combined; leave one of them out")
        click.echo(migrations.as_sql())
        if roles:
            click.echo(roles_as_sql())
        return
    app = find_app_or_database(app_option, config_path)
    if not app.is_embedded:
        report = run(app, lambda app: _migrate(app, roles, is_embedded=False))
    else:
        # Opened here: the app would migrate it on first use, and nothing would be reported.
        with open_shared(app.config.embedded.folder) as server:
            app.database_url = server.url
            report = run(app, lambda app: _migrate(app, roles, is_embedded=True))
    if as_json:
        print_json(report._asdict())
    else:
        _print(report)
        print_findings(report.warnings, stderr=True)


async def _migrate(app: "Forge", roles: bool, *, is_embedded: bool) -> MigrationReport:
    from forge.operations.findings.rights import check_rights
    from forge.store import job_types, schedule_types
    from forge.store.connection.tenant import standing
    from forge.store.migrate import index_waiting, migrate
    from forge.store.roles import ROLES, grant_roles
    from forge.transports.outbox_switch import switch

    database = await (await app.session()).database()
    applied = [str(step) for step in await migrate(database, on_wait=_print_wait)]
    transport = await switch(database, app.config.transport)
    is_limited = app.config.server.max_pending_per_tenant is not None
    index = await index_waiting(database) if is_limited else None
    signs_callers = None
    if roles:
        await grant_roles(database)
        signs_callers = bool((await database.run(standing()))["is_signed"])
    if app.definitions:
        types = [own.job_type for own in app.definitions.values()]
        await database.run(job_types.register(types))
    if app.schedule_definitions:
        schedules = [own.job_type for own in app.schedule_definitions.values()]
        await database.run(schedule_types.register(schedules))
        await app.schedules.plant(database.run)
    warnings = await check_rights(database, is_embedded=is_embedded)
    known = sorted(app.definitions)
    made = list(ROLES) if roles else []
    return MigrationReport(applied, transport, index, made, signs_callers, known, warnings)


def _print_wait(reason: str) -> None:
    click.echo(reason, err=True)


def _print(report: MigrationReport) -> None:
    for name in report.applied:
        click.echo(f"applied {name}")
    if not report.applied:
        click.echo("nothing to do: the database is up to date")
    if report.transport is not None:
        click.echo(report.transport)
    if report.waiting_index is not None:
        click.echo(report.waiting_index)
    if report.roles:
        click.echo(f"roles: granted to {' and '.join(report.roles)}")
    if report.signs_callers:
        click.echo("callers: signed with [auth] secret")
    elif report.signs_callers is not None:
        click.echo("callers: not signed; set [auth] secret and run this command again")
    if report.job_types:
        click.echo(f"job types: {', '.join(report.job_types)}")
