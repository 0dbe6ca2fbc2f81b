"""`forge migrate`: brings the database up to this version."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from forge.cli.options import json_option, project_options
from forge.core.errors import InvalidValue

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.cli.finding import Finding


class Report(NamedTuple):
    """What was done."""

    applied: list[str]
    transport: str | None
    waiting_index: str | None
    roles: list[str]
    # None where no roles were made.
    signs_callers: bool | None
    job_types: list[str]
    warnings: "list[Finding]"


@click.command()
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL and apply nothing.")
@click.option("--roles", is_flag=True, help="Also make the roles forge_api and forge_worker.")
@json_option
@project_options
def migrate(
    app_option: str | None, config_path: Path | None, as_sql: bool, roles: bool, as_json: bool
) -> None:
    """Apply the migrations that this database lacks, and make the app's job types known."""
    from forge.cli.project import find_app_or_database, run
    from forge.cli.show import print_findings, print_json
    from forge.store import migrate as migrations
    from forge.store.embedded import open_shared
    from forge.store.roles import roles_as_sql

    if as_sql:
        if as_json:
            raise InvalidValue("--sql prints SQL; leave --json out")
        click.echo(migrations.as_sql())
        if roles:
            click.echo(roles_as_sql())
        return
    app = find_app_or_database(app_option, config_path)
    if not app.is_embedded:
        report = run(app, lambda app: _migrate(app, roles, is_embedded=False))
    else:
        # Opened here, since an app that opens it would migrate it before we could say so.
        with open_shared(app.config.embedded.folder) as server:
            app.database_url = server.url
            report = run(app, lambda app: _migrate(app, roles, is_embedded=True))
    if as_json:
        print_json(report._asdict())
    else:
        _print(report)
        print_findings(report.warnings, stderr=True)


async def _migrate(app: "Forge", roles: bool, *, is_embedded: bool) -> Report:
    from forge.cli.check_rights import check_rights
    from forge.store import job_types, schedule_types
    from forge.store.migrate import index_waiting, migrate
    from forge.store.roles import ROLES, grant_roles
    from forge.store.tenant import standing
    from forge.transports.switch import switch
    from forge.types import schedule_type_rows, type_rows

    database = await (await app.session()).database()
    applied = [str(step) for step in await migrate(database, on_wait=_say_wait)]
    transport = await switch(database, app.config.transport)
    is_limited = app.config.server.max_pending_per_tenant is not None
    index = await index_waiting(database) if is_limited else None
    signs_callers = None
    if roles:
        await grant_roles(database)
        signs_callers = bool((await database.run(standing()))["is_signed"])
    if app.definitions:
        await database.run(job_types.register(type_rows(app.definitions.values())))
    if app.schedule_definitions:
        schedules = schedule_type_rows(app.schedule_definitions.values())
        await database.run(schedule_types.register(schedules))
        await app.schedules.plant(database.run)
    warnings = await check_rights(database, is_embedded=is_embedded)
    known = sorted(app.definitions)
    made = list(ROLES) if roles else []
    return Report(applied, transport, index, made, signs_callers, known, warnings)


def _say_wait(reason: str) -> None:
    click.echo(reason, err=True)


def _print(report: Report) -> None:
    for name in report.applied:
        click.echo(f"applied {name}")
    if not report.applied:
        click.echo("nothing to do: the database is up to date")
    if report.transport is not None:
        click.echo(report.transport)
    if report.waiting_index is not None:
        click.echo(report.waiting_index)
    if report.roles:
        click.echo(f"roles: {' and '.join(report.roles)} have their grants")
    if report.signs_callers:
        click.echo("callers: have to be signed with [auth] secret")
    elif report.signs_callers is not None:
        click.echo("callers: are not signed; set [auth] secret and run this again")
    if report.job_types:
        click.echo(f"job types: {', '.join(report.job_types)}")
