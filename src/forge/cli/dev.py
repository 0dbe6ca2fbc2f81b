"""`forge dev`: a worker that starts again whenever the code changes, on a database of its own."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import project_options

if TYPE_CHECKING:
    from forge.config import Config


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option(
    "--watch",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="Reload when something in this folder changes too; may be repeated.",
)
@project_options
def dev(
    app_argument: str | None,
    app_option: str | None,
    config_path: Path | None,
    folders: tuple[Path, ...],
) -> int:
    """Run everything for development, and reload it when the code changes.

    Without a configured database it starts a PostgreSQL of its own in .forge.
    """
    from forge.config import Config
    from forge.core.errors import ConfigError

    config = Config.load(config_path)
    reference = app_argument or app_option or config.app
    if reference is None:
        raise ConfigError(
            "no app is named; write `forge dev MODULE:APP`, such as shop.jobs:app, or "
            'app = "shop.jobs:app" at the top of forge.toml'
        )
    arguments = ["worker", reference, "--migrate", "--processes", "1"]
    if config_path is not None:
        arguments += ["--config", str(config_path)]
    return asyncio.run(_develop(arguments, [Path.cwd(), *folders], config))


async def _develop(arguments: list[str], folders: list[Path], config: "Config") -> int:
    from forge.cli.reloader import Reloader

    reloader = Reloader(arguments, folders, config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, reloader.stop)
    await reloader.run()
    return 0
