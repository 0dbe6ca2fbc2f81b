"""The routes of a server: the role and the query parameters of each."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

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


class RouteAccess(NamedTuple):
    """One method of a route, and the check of its callers; None for a public route."""

    name: str
    method: str
    check: AccessCheck | None


def access_of(routes: Iterable[BaseRoute]) -> Iterator[RouteAccess]:
    """Yield how each route is guarded, by the name that it has in the documentation."""
    for route in walk(routes):
        methods: Iterable[str] = getattr(route, "methods", None) or ("WS",)
        for method in sorted(set(methods) - {"HEAD"}):
            name = f"{method} {getattr(route, 'path_format', '')}"
            yield RouteAccess(name, method, check_of(route))


def check_of(route: BaseRoute) -> AccessCheck | None:
    """Return the check of a route's callers; None for a public route."""
    dependant = getattr(route, "dependant", None)
    for dependency in getattr(dependant, "dependencies", ()):
        if isinstance(dependency.call, AccessCheck):
            return dependency.call
    return None


def required_role_of(route: BaseRoute) -> RequiredRole | None:
    """Return the role that a route requires; None for a public route."""
    check = check_of(route)
    return None if check is None else check.required_role


def query_of(route: BaseRoute) -> list[str]:
    """Return the names of the query parameters of a route and its dependencies."""
    return list(_query(getattr(route, "dependant", None)))


def _query(dependant: Any) -> Iterator[str]:
    if dependant is not None:
        yield from (field.alias for field in dependant.query_params)
        for dependency in dependant.dependencies:
            yield from _query(dependency)
