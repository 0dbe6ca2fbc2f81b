"""Serves Forge's API and dashboard beside a Django project, in its asgi.py."""

from collections.abc import Awaitable, Callable
from typing import Any

from forge.cli.processes.serving import require_server_extra
from forge.core.errors import InvalidValue

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def mount(django: Asgi, prefix: str = "/forge") -> Asgi:
    """Return an application that serves Forge below a prefix and Django everywhere else.

    Callers are the users of Django: their permissions `forge.user`, `forge.staff` and so on are
    their roles.
    """
    root = prefix.rstrip("/")
    if not root.startswith("/"):
        raise InvalidValue(f"mount(…) takes a prefix such as '/forge', not {prefix!r}")
    require_server_extra()
    from forge.http import create_app
    from forge.integrations.django.authentication import SessionAuthenticator
    from forge.integrations.django.command_app import app

    api = create_app(app, authenticator=SessionAuthenticator.for_app(app))

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await api(scope, receive, send)
        elif f"{scope['path']}/".startswith(f"{root}/"):
            await api({**scope, "root_path": root}, receive, send)
        else:
            await django(scope, receive, send)

    return application
