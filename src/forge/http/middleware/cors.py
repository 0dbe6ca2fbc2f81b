"""Cross-origin requests of pages, in plain ASGI because it runs at every request."""

from collections.abc import Callable, Iterable, Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forge.http.routes import walk

RawHeaders = list[tuple[bytes, bytes]]

# The headers that the server reads and that browsers do not send of their own accord.
ALLOWED_HEADERS = ("Authorization", "Content-Type", "Last-Event-ID", "Traceparent", "Tracestate")
# The headers of responses that clients act on.
EXPOSED_HEADERS = ("Retry-After", "WWW-Authenticate")
# Seconds for which a browser may keep the answer to a preflight; Chromium keeps none for longer.
MAX_AGE = 7200


class Cors:
    """Lets pages of allowed origins read all responses, also errors, and answers preflights.

    A page of another origin gets the response that it would get without this middleware.
    """

    def __init__(
        self,
        app: ASGIApp,
        allowed_origins: Callable[[], Sequence[str]],
        routes: Iterable[BaseRoute],
    ) -> None:
        self._app = app
        # Read at each request, as for sockets.
        self._allowed_origins = allowed_origins
        methods = {m for route in walk(routes) for m in getattr(route, "methods", None) or ()}
        self._preflight: ASGIApp = Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": ", ".join(sorted(methods)),
                "Access-Control-Allow-Headers": ", ".join(ALLOWED_HEADERS),
                "Access-Control-Max-Age": str(MAX_AGE),
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = self._allowed_origins()
        if scope["type"] != "http" or not allowed:
            await self._app(scope, receive, send)
            return
        added = cors_headers(scope["headers"], allowed)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        is_answered_here = _is_preflight(scope) and _allowed_origin(scope["headers"], allowed)
        answer = self._preflight if is_answered_here else self._app
        await answer(scope, receive, send_with_headers)


def cors_headers(request: RawHeaders, allowed: Sequence[str]) -> RawHeaders:
    """Return the headers that every response to a request needs."""
    if not allowed:
        return []
    # On all responses: a cache must not give a page what was meant for another one.
    added = [(b"vary", b"Origin")]
    if (origin := _allowed_origin(request, allowed)) is not None:
        added += [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", ", ".join(EXPOSED_HEADERS).encode()),
        ]
    return added


def _allowed_origin(request: RawHeaders, allowed: Sequence[str]) -> bytes | None:
    origins = [value for name, value in request if name == b"origin"]
    return origins[0] if len(origins) == 1 and origins[0].decode("latin-1") in allowed else None


def _is_preflight(scope: Scope) -> bool:
    is_asking = any(name == b"access-control-request-method" for name, _ in scope["headers"])
    return scope["method"] == "OPTIONS" and is_asking
