"""The routes of a server, and what each asks of its caller."""

from collections.abc import Iterable, Iterator
from typing import Any

from starlette.routing import BaseRoute

from forge.http.access import Need


def walk(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Yield routes one by one, those of included routers too."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from walk(included.routes)


def need_of(route: BaseRoute) -> Need | None:
    """Return what a route's own dependencies ask for; None lets everybody in."""
    dependant = getattr(route, "dependant", None)
    for dependency in getattr(dependant, "dependencies", ()):
        need: Need | None = getattr(dependency.call, "need", None)
        if need is not None:
            return need
    return None


def query_of(route: BaseRoute) -> list[str]:
    """Return the names of the query parameters that a route and its dependencies read."""
    return list(_query(getattr(route, "dependant", None)))


def _query(dependant: Any) -> Iterator[str]:
    if dependant is not None:
        yield from (field.alias for field in dependant.query_params)
        for dependency in dependant.dependencies:
            yield from _query(dependency)
