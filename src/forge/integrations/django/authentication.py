"""Callers of the mounted API and dashboard, by Django's sessions and permissions."""

import time
from importlib import import_module
from io import BytesIO
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from starlette.requests import HTTPConnection

from forge.app import Forge
from forge.http.auth.access import Identity, Role
from forge.http.auth.rules import watch_rules
from forge.http.problems.problem import Problem
from forge.integrations.django.roles import roles_of
from forge.integrations.django.tenants import tenant_function, tenant_of
from forge.integrations.fastapi import HostAuthenticator

# Seconds after which open sockets and streams must authenticate again: sessions end, and
# permissions are withdrawn.
SESSION_SECONDS = 60.0


class SessionAuthenticator(HostAuthenticator):
    """Identifies the signed-in users of the project, then Forge's own tokens."""

    @classmethod
    def for_app(cls, app: Forge) -> "SessionAuthenticator":
        """Return the authenticator of an app of this project."""
        return cls(watch_rules(app.config), find_caller, SESSION_SECONDS)


async def find_caller(connection: HTTPConnection) -> Identity | None:
    """Return the user of a request's session; None without a signed-in user."""
    if "authorization" in connection.headers:
        return None  # a token, which stands for another caller
    return await sync_to_async(_find_caller, thread_sensitive=False)(dict(connection.scope))


def _find_caller(scope: dict[str, Any]) -> Identity | None:
    close_old_connections()
    try:
        return _identity_of(_request_of(scope))
    finally:
        close_old_connections()


def _request_of(scope: dict[str, Any]) -> Any:
    """Return Django's request, for a socket too, with its session and user."""
    request = ASGIRequest({"method": "GET", **scope}, BytesIO())
    store = import_module(settings.SESSION_ENGINE).SessionStore
    request.session = store(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    request.user = get_user(request)
    return request


def _identity_of(request: Any) -> Identity | None:
    user = request.user
    if not user.is_authenticated:
        return None
    tenant_id = tenant_of(request)
    if tenant_id is None and tenant_function() is not None and not user.has_perm("forge.operator"):
        raise Problem("forbidden", "your account has no tenant; ask an administrator for one")
    ends = time.time() + SESSION_SECONDS
    return Identity(
        name=user.get_username(),
        roles=frozenset(map(Role, roles_of(user))),
        tenant_id=tenant_id,
        expires_at=min(ends, request.session.get_expiry_date().timestamp()),
    )
