"""A local site with feeds and a WebSub hub, for the demonstration and the tests."""

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import httpx
from examples.feeds.documents import Document
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Site:
    """Serves documents as feeds, fails on request, and pushes new entries."""

    def __init__(self, log: Callable[[str], None] = lambda line: None) -> None:
        self.address = ""
        self.documents: dict[str, Document] = {}
        # Error responses to return first, in order: (status, headers).
        self.troubles: dict[str, list[tuple[int, dict[str, str]]]] = {}
        self.answers: Counter[tuple[str, int]] = Counter()
        # The subscribers of the hub: topic → callback → secret.
        self.pushed: dict[str, dict[str, str]] = {}
        self.verified = 0
        self.asgi = Starlette(
            routes=[
                Route("/feeds/{name}", self._feed),
                Route("/hub", self._hub, methods=["POST"]),
            ]
        )
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, name: str) -> str:
        return f"{self.address}/feeds/{name}"

    def fetches(self, name: str) -> int:
        return sum(count for (feed, _), count in self.answers.items() if feed == name)

    def publish(self, name: str, title: str) -> None:
        """Add an entry and push it to the subscribers of the hub."""
        document = self.documents[name]
        document.add(title)
        for callback, secret in self.pushed.get(self.url(name), {}).items():
            self._send(self._push(callback, secret, document.written(self.url(name)).encode()))

    async def _feed(self, request: Request) -> Response:
        name = request.path_params["name"]
        answer = self._answer(name, request)
        self.answers[name, answer.status_code] += 1
        self._log(f"    GET {name} → {answer.status_code}")
        return answer

    def _answer(self, name: str, request: Request) -> Response:
        if self.troubles.get(name):
            status, headers = self.troubles[name].pop(0)
            return Response(status_code=status, headers=headers)
        if name not in self.documents:
            return Response(status_code=404)
        return self.documents[name].answer(self.url(name), request.headers)

    async def _hub(self, request: Request) -> Response:
        """Accept a subscription and verify it at its callback in the background."""
        sent = parse_qs((await request.body()).decode())
        fields = {name.removeprefix("hub."): values[0] for name, values in sent.items()}
        if fields.get("mode") != "subscribe" or "callback" not in fields:
            return Response("this hub only subscribes", 400)
        self._send(self._verify(fields))
        return Response(status_code=202)

    async def _verify(self, fields: dict[str, str]) -> None:
        challenge = secrets.token_hex(16)
        asked = {
            "hub.mode": "subscribe",
            "hub.topic": fields["topic"],
            "hub.challenge": challenge,
            "hub.lease_seconds": fields["lease_seconds"],
        }
        async with httpx.AsyncClient() as http:
            answer = await http.get(fields["callback"], params=asked)
        if answer.is_success and answer.text == challenge:
            self.pushed.setdefault(fields["topic"], {})[fields["callback"]] = fields["secret"]
            self.verified += 1
            self._log(f"    the hub pushes {fields['topic'].rpartition('/')[2]} from now on")

    async def _push(self, callback: str, secret: str, body: bytes) -> None:
        signature = f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"
        async with httpx.AsyncClient() as http:
            await http.post(callback, content=body, headers={"X-Hub-Signature": signature})

    def _send(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
