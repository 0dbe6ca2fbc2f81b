"""`forge migrate`: brings the database up to this version."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import project_options

if TYPE_CHECKING:
    from forge.app import Forge


@click.command()
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL and apply nothing.")
@click.option("--roles", is_flag=True, help="Also make the roles forge_api and forge_worker.")
@project_options
def migrate(app_option: str | None, config_path: Path | None, as_sql: bool, roles: bool) -> None:
    """Apply the migrations that this database lacks, and make the app's job types known."""
    from forge.cli.project import find_app, find_database, run
    from forge.config import Config
    from forge.store import migrate as migrations
    from forge.store.embedded import open_shared
    from forge.store.roles import roles_as_sql

    if as_sql:
        click.echo(migrations.as_sql())
        if roles:
            click.echo(roles_as_sql())
        return
    is_named = app_option is not None or Config.load(config_path).app is not None
    app = (find_app if is_named else find_database)(app_option, config_path)
    if app.database_url is not None:
        run(app, lambda app: _migrate(app, roles))
        return
    # Opened here, since an app that opens it would migrate it before we could say so.
    with open_shared(app.config.embedded.folder) as server:
        app.database_url = server.url
        run(app, lambda app: _migrate(app, roles))


async def _migrate(app: "Forge", roles: bool) -> None:
    from forge.store import job_types
    from forge.store.migrate import migrate
    from forge.store.roles import grant_roles
    from forge.transports.switch import switch
    from forge.types import type_rows

    database = await (await app.session()).database()
    applied = await migrate(database)
    for migration in applied:
        click.echo(f"applied {migration.version:04}_{migration.name}")
    if not applied:
        click.echo("nothing to do: the database is up to date")
    if change := await switch(database, app.config.transport):
        click.echo(change)
    if roles:
        await grant_roles(database)
        click.echo("roles: forge_api and forge_worker have their grants")
    if app.definitions:
        await database.run(job_types.register(type_rows(app.definitions.values())))
        click.echo(f"job types: {', '.join(sorted(app.definitions))}")
