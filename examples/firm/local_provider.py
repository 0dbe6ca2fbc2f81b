"""A local mail and calendar provider that can return errors like a real one."""

import secrets
from collections import Counter
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

NO_MAIL = b"\x89PNG\r\n\x1a\n this was a mail once"


class Provider:
    """Serves mails and one calendar to clients with a token, and fails on request."""

    def __init__(self, log: Callable[[str], None] = lambda line: None) -> None:
        self.address = ""
        self.tokens: set[str] = set()
        self.mails: dict[str, bytes] = {}
        self.pages: list[list[dict[str, Any]]] = []
        # Error responses to return first, in order: (status, headers).
        self.troubles: dict[str, list[tuple[int, dict[str, str]]]] = {}
        self.answers: Counter[tuple[str, int]] = Counter()
        self.asgi = Starlette(
            routes=[Route("/messages/{name}", self._message), Route("/events", self._events)]
        )
        self._log = log

    def open(self) -> str:
        """Grant access. Returns a new token."""
        token = secrets.token_urlsafe(16)
        self.tokens.add(token)
        return token

    def post(self, name: str, sender: str, subject: str) -> None:
        """Add a mail to the mailbox."""
        mail = EmailMessage()
        mail["From"], mail["Subject"] = sender, subject
        mail.set_content(f"Dear counsel,\n\nabout {subject}: please call me.\n")
        self.mails[name] = mail.as_bytes()

    async def _message(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self.mails.get(name)
        answer = Response(status_code=404) if found is None else Response(found)
        return self._answered(name, request, answer)

    async def _events(self, request: Request) -> Response:
        number = int(request.query_params["page"])
        following = number + 1 if number < len(self.pages) else None
        answer = JSONResponse({"events": self.pages[number - 1], "next_page": following})
        return self._answered(f"page {number}", request, answer)

    def _answered(self, name: str, request: Request, answer: Response) -> Response:
        """Return the response, or an error if the token is invalid or an error is queued."""
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            answer = Response(status_code=401)
        elif self.troubles.get(name):
            status, headers = self.troubles[name].pop(0)
            answer = Response(status_code=status, headers=headers)
        self.answers[name, answer.status_code] += 1
        self._log(f"      the provider returns {answer.status_code} for {name}")
        return answer
