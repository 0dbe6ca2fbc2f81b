"""The routes of a server, and what each asks of its caller."""

from collections.abc import Iterable, Iterator

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
