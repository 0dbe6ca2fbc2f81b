"""The tenant of a request: by the function that FORGE["TENANT"] names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.utils.module_loading import import_string

from forge.core.errors import ConfigError
from forge.core.new_job import check_tenant
from forge.integrations.django.settings import DjangoSettings

_CURRENT: ContextVar[int | None] = ContextVar("forge_tenant", default=None)


def current_tenant() -> int | None:
    """Return the tenant that dispatches of this request have by default."""
    return _CURRENT.get()


def tenant_function() -> Callable[[Any], int | None] | None:
    """Return the function that FORGE["TENANT"] names."""
    path = DjangoSettings.current().tenant
    if path is None:
        return None
    try:
        found = import_string(path)
    except ImportError as error:
        raise ConfigError(f"FORGE: TENANT: {error}; name a function of a request") from error
    if not callable(found):
        raise ConfigError(f"FORGE: TENANT: {path} is not a function of a request")
    hook: Callable[[Any], int | None] = found
    return hook


def tenant_of(request: Any) -> int | None:
    """Return the tenant of a request; None where there are none, or the request has none."""
    find = tenant_function()
    return None if find is None else check_tenant(find(request))


@contextmanager
def acting_for(tenant_id: int | None) -> Iterator[None]:
    """Give dispatches in the block this tenant unless they name one."""
    before = _CURRENT.set(tenant_id)
    try:
        yield
    finally:
        _CURRENT.reset(before)


class TenantMiddleware:
    """Gives the jobs that a request dispatches its tenant; below AuthenticationMiddleware."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._respond(request)
        with acting_for(tenant_of(request)):
            return self._get_response(request)

    async def _respond(self, request: Any) -> Any:
        with acting_for(await sync_to_async(tenant_of)(request)):
            return await self._get_response(request)
