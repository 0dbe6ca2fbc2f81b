"""The dashboard in a real browser, in front of a real server, worker and database."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from forge import Forge
from tests.apps import MakeApp, Work
from tests.browser.dashboard.jobs import mail_server, register, stage
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.live_client import Served

# Milliseconds in which a change reaches the page.
PATIENCE = 15_000
MANAGER = ("user", "staff", "manager")
TRACES = "https://traces.example/{trace_id}?tab=1"
ROLES = [("viewer", "staff"), ("user",), ("user", "staff"), MANAGER]
# Where to keep a picture of each screen; without it none are made.
PICTURES = os.environ.get("FORGE_TEST_PICTURES")
expect.set_options(timeout=PATIENCE)

# What the Content Security Policy blocks, is reported to the test.
REPORT_VIOLATIONS = """addEventListener('securitypolicyviolation', (event) =>
    reportViolation(`${event.violatedDirective}: ${event.sample || event.blockedURI}`), true)"""


class Dashboard:
    """The dashboard of one server, as one person or more see it; errors fail the test."""

    def __init__(
        self, context: BrowserContext, app: Forge, api: FastAPI, make_token: MakeToken
    ) -> None:
        self.context = context
        self.app = app
        self.api = api
        self.prefix = ""
        # What the console and the policy report.
        self.problems: list[str] = []
        self._provoked: list[str] = []
        self._make_token = make_token
        self._served: Served
        self.address = ""

    async def start(self, port: int = 0) -> None:
        """Serve the app; with a port, at the same address as before."""
        self._served = Served(self.api, port)
        self.address = await self._served.started()

    async def stop(self) -> None:
        await self._served.stop()

    async def restart(self) -> None:
        """Serve the app at the same address again."""
        await self.start(self._served.port)

    def token(self, *roles: str, tenant: int | None = None, name: str = "ann") -> str:
        headers = self._make_token(*roles, tenant=tenant, name=name)
        return headers["Authorization"].removeprefix("Bearer ")

    async def new_page(self, width: int = 1280, height: int = 900) -> Page:
        """Open an empty tab whose errors fail the test."""
        page = await self.context.new_page()
        await page.set_viewport_size({"width": width, "height": height})
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        return page

    async def open(
        self,
        path: str = "/",
        *roles: str,
        tenant: int | None = None,
        width: int = 1280,
        height: int = 900,
    ) -> Page:
        """Open a screen, signed in with these roles; without any, as a manager."""
        page = await self.new_page(width, height)
        given = self.token(*(roles or MANAGER), tenant=tenant)
        await page.goto(f"{self.address}{self.prefix}/#token={given}")
        await expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
        await self.go(page, path)
        return page

    async def go(self, page: Page, path: str) -> None:
        """Open another screen in the same tab."""
        await page.evaluate("(path) => { location.hash = path }", path)
        await expect(page.locator("main h1").first).to_be_visible()

    async def me(self, *roles: str) -> dict[str, Any]:
        """Return what the server says of a caller with these roles."""
        headers = {"Authorization": f"Bearer {self.token(*roles)}"}
        async with httpx.AsyncClient(base_url=self.address) as http:
            found: dict[str, Any] = (await http.get("/_api/me", headers=headers)).json()
            return found

    async def audit(self) -> list[tuple[str, str | None, str | None]]:
        """Return the event, actor and notes of all audit rows."""
        headers = {"Authorization": f"Bearer {self.token(*MANAGER)}"}
        async with httpx.AsyncClient(base_url=self.address) as http:
            items = (await http.get("/_api/audit", headers=headers)).json()["items"]
            return [(item["event"], item["actor"], item["notes"]) for item in items]

    def provoke(self, pattern: str) -> None:
        """Expect problems that match; there must be one at the end of the test."""
        self._provoked.append(pattern)

    def check(self) -> None:
        """Fail unless the problems are those that the test provoked."""
        unexpected = [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self._provoked)
        ]
        assert unexpected == []
        for pattern in self._provoked:
            assert any(re.search(pattern, problem) for problem in self.problems), pattern

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")


@pytest.fixture
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(locale="en-US", timezone_id="Europe/Paris")
    yield context
    await context.close()


@pytest.fixture
async def dashboard(
    context: BrowserContext,
    make_app: MakeApp,
    make_server_app: MakeServerApp,
    token: MakeToken,
    work: Work,
) -> AsyncIterator[Dashboard]:
    """A browser, a server, and a worker with the types of `tests/browser/dashboard/jobs.py`."""
    app = make_app(dashboard={"label": "staging", "trace_url": TRACES})
    register(app)
    stage.reset()
    mail_server.reset()
    dashboard = Dashboard(context, app, make_server_app(app), token)

    def report(source: Any, violation: str) -> None:
        dashboard.problems.append(f"policy: {violation}")

    await context.expose_binding("reportViolation", report)
    await context.add_init_script(REPORT_VIOLATIONS)
    await dashboard.start()
    await work(app)
    yield dashboard
    stage.advance(100)
    await context.close()
    await dashboard.stop()
    dashboard.check()


async def shown_routes(page: Page) -> set[str]:
    """Return the routes of the actions that a page shows."""
    found = page.locator("[data-route]")
    return set(await found.evaluate_all("all => all.map((one) => one.dataset.route)"))


async def picture(page: Page, name: str) -> None:
    """Keep a picture of the page in both themes, if pictures are wanted."""
    if PICTURES is None:
        return
    width = (page.viewport_size or {"width": 0})["width"]
    for theme in ("light", "dark"):
        await page.get_by_label("Theme").select_option(theme)
        await page.screenshot(path=Path(PICTURES) / f"{name}-{theme}-{width}.png", full_page=True)
