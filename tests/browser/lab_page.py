"""A page of the browser tests: trackers in one framework, used as a person uses them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Error, Locator, Page, WebSocket, expect

# Milliseconds in which a change reaches the page: a reconnect may wait for seconds.
PATIENCE = 30_000
FRAMEWORKS = pytest.mark.parametrize("framework", ["svelte", "react"])


class LabPage:
    """A page with trackers; its errors and connections are recorded."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[Error] = []
        self.sockets: list[WebSocket] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(error))
        page.on("websocket", lambda socket: self.sockets.append(socket))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def connections(self) -> int:
        """How many sockets, event streams and polls the page has opened."""
        ends = ("/events", "/live")
        return len(self.sockets) + sum(url.endswith(ends) for url in self.requests)

    async def open(
        self, address: str, server: str, token: Callable[[], str], *, count: int = 1
    ) -> None:
        """Open the page with trackers for a server; the page fetches tokens from this function."""
        await self.page.expose_function("forgeToken", token)
        await self.page.add_init_script(f"globalThis.lab = {{ url: {server!r}, count: {count} }};")
        await self.page.goto(address)
        await expect(self.page.locator("section")).to_have_count(count, timeout=PATIENCE)

    def tracker(self, index: int = 0) -> "Tracker":
        return Tracker(self.page, index)

    async def leave(self) -> None:
        """Remove the trackers from the page, as a router does that shows another page."""
        await self.page.evaluate("lab.leave()")
        await expect(self.page.locator("section")).to_have_count(0, timeout=PATIENCE)


class Tracker:
    """One tracker of a page, and its markup."""

    def __init__(self, page: Page, index: int) -> None:
        self._page = page
        self._index = index

    @property
    def section(self) -> Locator:
        return self._page.locator("section").nth(self._index)

    async def start(self, format: str = "csv") -> str:
        """Start a job and return its id."""
        return str(await self._call("start", {"format": format}))

    async def attach(self, job_id: str) -> None:
        await self._call("attach", job_id)

    async def cancel(self) -> None:
        await self._call("cancel")

    async def done(self) -> Any:
        """Wait for the output of the job."""
        return await self._call("done")

    async def shows(self, status: str, percent: int | None = None) -> None:
        """Wait until the page shows this status, and a bar of this width."""
        await self._has("data-status", status)
        if percent is not None:
            bar, width = self.section.locator(".bar"), re.compile(rf"^width: {percent}%;?$")
            await expect(bar).to_have_attribute("style", width, timeout=PATIENCE)

    async def shows_connection(self, state: str) -> None:
        await self._has("data-connection", state)

    async def shows_error(self, code: str) -> None:
        await self._has("data-error", code)

    async def _has(self, attribute: str, value: str) -> None:
        await expect(self.section).to_have_attribute(attribute, value, timeout=PATIENCE)

    async def _call(self, verb: str, *arguments: Any) -> Any:
        script = "([index, verb, given]) => lab.trackers[index][verb](...given)"
        return await self._page.evaluate(script, [self._index, verb, arguments])
