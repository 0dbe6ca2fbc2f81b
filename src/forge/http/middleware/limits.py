"""Request limits and security headers, in plain ASGI because it runs at every request."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forge.http.problems.error_handlers import as_problem
from forge.http.problems.problem import Fault, Problem

# Responses are never pages: forbid sniffing, caching and scripts.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


class RequestLimits:
    """Rejects large bodies and malformed URLs, and turns any error into a problem."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                _add_headers(message)
            await send(message)

        try:
            _check_url(scope)
            bounded = self._bounded(scope, receive)
            await self._app(scope, bounded, send_with_headers)
        except Exception as error:
            if has_started:
                raise
            await as_problem(error).answer()(scope, receive, send_with_headers)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Return `receive` with an error once the body exceeds the limit."""
        declared = next((v for k, v in scope["headers"] if k == b"content-length"), b"")
        if declared.isdigit() and int(declared) > self._max_body:
            raise self._too_large()
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._max_body:
                    raise self._too_large()
            return message

        return receive_bounded

    def _too_large(self) -> HTTPException:
        # FastAPI passes on HTTPException while it reads a body; other errors become a 400.
        return HTTPException(413, headers={"Connection": "close"})


def _check_url(scope: Scope) -> None:
    path: str = scope["path"]
    query: bytes = scope["query_string"]
    if "\0" in path or b"%00" in query or b"\0" in query:
        raise _malformed_url("NUL")
    if not path.isascii() and any("\ud800" <= character <= "\udfff" for character in path):
        raise _malformed_url("a lone surrogate")


def _malformed_url(what: str) -> Problem:
    detail = f"the URL contains {what}; remove it"
    return Problem("invalid", detail, errors=[Fault("path", detail)])


def _add_headers(message: Message) -> None:
    given = list(message.get("headers", ()))
    names = {name for name, _ in given}
    message["headers"] = [*given, *(header for header in HEADERS if header[0] not in names)]
