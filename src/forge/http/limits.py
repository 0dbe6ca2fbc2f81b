"""What a request may be, and what every answer says: plain ASGI, for it runs at each request."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forge.http.problem import Fault, Problem
from forge.http.refusals import as_problem

# An answer is never a page: nothing may be sniffed, kept or run from it.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


class Limits:
    """Refuses bodies that are too large and paths that are no text, and survives any fault."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                _add_headers(message)
            await send(message)

        try:
            _look_at_address(scope)
            bounded = self._bounded(scope, receive)
            await self._app(scope, bounded, send_with_headers)
        except Exception as error:
            if begun:
                raise
            await as_problem(error).answer()(scope, receive, send_with_headers)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Return the same messages, and an error instead of the byte that is too many."""
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
        # FastAPI lets this kind through while it reads a body; every other becomes a 400.
        return HTTPException(413, headers={"Connection": "close"})


def _look_at_address(scope: Scope) -> None:
    path: str = scope["path"]
    query: bytes = scope["query_string"]
    if "\0" in path or b"%00" in query or b"\0" in query:
        raise _no_text("NUL")
    if not path.isascii() and any("\ud800" <= character <= "\udfff" for character in path):
        raise _no_text("a lone surrogate")


def _no_text(what: str) -> Problem:
    detail = f"the address holds {what}, which no text has; remove it"
    return Problem("invalid", detail, errors=[Fault("path", detail)])


def _add_headers(message: Message) -> None:
    given = list(message.get("headers", ()))
    names = {name for name, _ in given}
    message["headers"] = [*given, *(header for header in HEADERS if header[0] not in names)]
