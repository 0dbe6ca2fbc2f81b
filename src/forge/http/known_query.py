"""Query parameters that nobody reads are refused: a filter with a typo would show everything."""

from collections.abc import Iterable, Sequence

from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from forge.core.suggestion import suggestion
from forge.http.problem import Fault, Problem, invalid
from forge.http.routes import query_of, walk

# So much of a name is told back to whoever sent it.
LONGEST_TOLD = 50


class KnownQuery:
    """Looks at the query before the route does, whichever route it is."""

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
                if unknown := [name for name in given if name not in known]:
                    scope["route"] = route  # for the metrics, which are counted around this
                    return _unknown(unknown, known)
                return None
        return None


def _unknown(names: Sequence[str], known: Sequence[str]) -> Problem:
    return invalid(
        Fault(f"query.{name[:LONGEST_TOLD]}", f"is not a parameter; {_advice(name, known)}")
        for name in names
    )


def _advice(name: str, known: Sequence[str]) -> str:
    return suggestion(name[:LONGEST_TOLD], known, "this route") if known else "leave it out"
