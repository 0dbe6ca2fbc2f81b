"""URL middleware: rejects unknown query parameters, and adds missing trailing slashes."""

from collections.abc import Iterable, Sequence

from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from forge.core.suggestion import suggestion
from forge.http.problems.problem import Fault, Problem, invalid
from forge.http.routes import query_of, walk

# Characters of an unknown parameter's name that the error repeats.
MAX_NAME_LENGTH = 50


class KnownQuery:
    """Rejects unknown query parameters: a misspelt filter would match everything."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = [(route, query_of(route)) for route in walk(routes)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("query_string") and (refusal := self._refusal(scope)) is not None:
            if scope["type"] == "http":
                raise refusal
            await WebSocket(scope, receive, send).send_denial_response(refusal.answer())
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        for route, known in self._routes:
            if route.matches(scope)[0] is Match.FULL:
                given = dict.fromkeys(QueryParams(scope["query_string"]))
                if unknown := [name for name in given if not _is_known(name, known)]:
                    scope["route"] = route  # for the metrics middleware outside
                    return _unknown(unknown, known)
                return None
        return None


def _is_known(name: str, known: Sequence[str]) -> bool:
    """Whether a route has the parameter, or one such as `input.*`, which is a prefix."""
    return name in known or any(
        each.endswith(".*") and name.startswith(each[:-1]) for each in known
    )


def _unknown(names: Sequence[str], known: Sequence[str]) -> Problem:
    return invalid(
        Fault(f"query.{name[:MAX_NAME_LENGTH]}", f"unknown parameter; {_advice(name, known)}")
        for name in names
    )


def _advice(name: str, known: Sequence[str]) -> str:
    return suggestion(name[:MAX_NAME_LENGTH], known, "this route") if known else "leave it out"


ADMIN_PREFIX = "/api/jobs/admin/"


class TrailingSlash:
    """Adds the trailing slash to paths of the admin API, so that each has one route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            below = path.removeprefix(scope.get("root_path") or "")
            if below.startswith(ADMIN_PREFIX) and not below.endswith("/"):
                # In place: the metrics middleware outside reads the route from this scope.
                scope["path"] = f"{path}/"
        await self._app(scope, receive, send)
