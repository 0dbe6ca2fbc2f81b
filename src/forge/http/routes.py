"""The routes of a server: the role and the query parameters of each."""

from collections.abc import Iterable, Iterator
from typing import Any

from starlette.routing import BaseRoute

from forge.http.auth.access import AccessCheck, RequiredRole


def walk(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Yield all routes, including those of included routers."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from walk(included.routes)


def required_role_of(route: BaseRoute) -> RequiredRole | None:
    """Return the role that a route requires; None for a public route."""
    dependant = getattr(route, "dependant", None)
    for dependency in getattr(dependant, "dependencies", ()):
        if isinstance(dependency.call, AccessCheck):
            return dependency.call.required_role
    return None


def query_of(route: BaseRoute) -> list[str]:
    """Return the names of the query parameters of a route and its dependencies."""
    return list(_query(getattr(route, "dependant", None)))


def _query(dependant: Any) -> Iterator[str]:
    if dependant is not None:
        yield from (field.alias for field in dependant.query_params)
        for dependency in dependant.dependencies:
            yield from _query(dependency)
