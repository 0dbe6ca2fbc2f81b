"""Finds the app or the database of a command, and runs a coroutine with it."""

import asyncio
import os
import sys
import traceback
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from forge.app import Forge
from forge.config.settings import Config
from forge.config.values import app_reference
from forge.core.errors import ConfigError, ForgeError, InvalidValue

T = TypeVar("T")


class AppNotFound(ForgeError):
    """The app cannot be imported."""


def find_app(reference: str | None, config_path: Path | None) -> Forge:
    """Import the app named by the argument, by --app or by the settings."""
    config = Config.load(config_path)
    named = reference or config.app
    if named is None:
        raise ConfigError(
            "no app given; pass MODULE:APP, such as shop.jobs:app, or write "
            'app = "shop.jobs:app" at the top of forge.toml'
        )
    app = import_app(named)
    if config_path is not None:
        app.configure(config, database_url=config.database.url or app.database_url)
    return app


def find_database(reference: str | None, config_path: Path | None) -> Forge:
    """Return an app for its database; import the code only if it names the database."""
    config = Config.load(config_path)
    if reference is None and (config.database.url is not None or config.app is None):
        return Forge(config)
    return find_app(reference, config_path)


def find_app_or_database(reference: str | None, config_path: Path | None) -> Forge:
    """Return the imported app if one is configured, else an app for the database alone."""
    is_named = reference is not None or Config.load(config_path).app is not None
    return (find_app if is_named else find_database)(reference, config_path)


def import_app(reference: str) -> Forge:
    """Import `module:app`, with the current folder first on the path."""
    try:
        module, _, attribute = str(app_reference(reference)).partition(":")
    except InvalidValue as error:
        raise InvalidValue(f"the app {error}") from None
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    found: Any = _import(module)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise AppNotFound(
                f"{module} has no attribute {name!r}; define it there or name another app"
            )
        found = getattr(found, name)
    if not isinstance(found, Forge):
        raise AppNotFound(
            f"{reference} is a {type(found).__name__}, not a forge.Forge; name the variable that "
            "holds the app"
        )
    return found


def run(app: Forge, act: Callable[[Forge], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine with an app and close the app; uses uvloop if it is installed."""

    async def act_and_close() -> T:
        try:
            return await act(app)
        finally:
            await app.close()

    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        return runner.run(act_and_close())


def _import(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module + ".").startswith(error.name + "."):
            raise AppNotFound(
                f"module {error.name!r} not found in {os.getcwd()} or on the Python path; run "
                "forge in the folder that contains it, or correct the name"
            ) from error
        raise _broken(module, error) from error
    except Exception as error:
        raise _broken(module, error) from error


def _broken(module: str, error: Exception) -> AppNotFound:
    """Return an error that names the line of the user's code that failed to import."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
        what = error.msg
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
        what = str(error)
    return AppNotFound(
        f"cannot import {module}: {type(error).__name__}: {what} ({place}); correct the error; "
        "--traceback shows the full traceback"
    )


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
