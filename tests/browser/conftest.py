"""A real browser with built pages, in front of a real server and worker."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, BrowserContext, async_playwright
from starlette.staticfiles import StaticFiles

from forge import Forge
from tests.apps import MakeApp, Work
from tests.browser.building import build_once
from tests.browser.jobs import export_users, stage
from tests.browser.lab_page import LabPage
from tests.faults.kit.proxy import Proxy
from tests.http.conftest import (
    MakeServerApp,
    MakeToken,
    Serve,
    api_url,
    make_server_app,
    serve,
    token,
)
from tests.http.live.conftest import pass_time
from tests.http.live_client import Served
from tests.typescript.project import packages

__all__ = ["api_url", "make_server_app", "packages", "pass_time", "serve", "token"]

CHROMIUM = Path(os.environ.get("FORGE_TEST_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
TENANT = 7


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's program; without it the tests are skipped."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: install Chromium, or set FORGE_TEST_CHROMIUM")
    return CHROMIUM


@pytest.fixture
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    """Chromium without a window."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=chromium, args=ARGUMENTS + sandbox, chromium_sandbox=not sandbox
        )
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def pages(chromium: Path, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    return build_once(packages, tmp_path_factory)


class Lab:
    """Pages, a proxy and a server that can be replaced; the pages come from another origin."""

    def __init__(
        self,
        context: BrowserContext,
        site: str,
        make_api: Callable[[], Any],
        make_token: MakeToken,
    ) -> None:
        self.context = context
        # How many tokens the pages have fetched, and for how many seconds the next one is valid.
        self.tokens = 0
        self.lifetime = 600.0
        self.proxy: Proxy
        self.api: Any
        self._site = site
        self._make_api = make_api
        self._make_token = make_token
        self._served: Served
        self._pages: list[LabPage] = []

    async def start_server(self) -> str:
        """Start a server on a new port; return its address."""
        self.api = self._make_api()
        self._served = Served(self.api)
        return await self._served.started()

    async def stop_server(self) -> None:
        await self._served.stop()

    async def restart_server(self) -> None:
        """Stop the server as a deploy does, and start another one behind the proxy."""
        await self.stop_server()
        self.proxy.point_at(await self.start_server())

    async def open(self, framework: str, *, count: int = 1, has_clock: bool = False) -> LabPage:
        """Open a page in a new tab; with a clock, the test can move its time."""
        page = LabPage(await self.context.new_page())
        self._pages.append(page)
        if has_clock:
            await page.page.clock.install()
        server = f"http://127.0.0.1:{self.proxy.port}"
        await page.open(f"{self._site}/{framework}.html", server, self._token, count=count)
        return page

    def _token(self) -> str:
        self.tokens += 1
        headers = self._make_token("user", tenant=TENANT, lifetime=self.lifetime)
        return headers["Authorization"].removeprefix("Bearer ")

    @property
    def followed(self) -> int:
        """How many jobs the server follows for its clients."""
        hub = self.api.state.live_hub.hub
        return 0 if hub is None else len(hub._watched)

    @property
    def errors(self) -> list[str]:
        """The errors that no code of a page handled."""
        return [str(error) for page in self._pages for error in page.errors]


@pytest.fixture
async def lab(
    browser: Browser,
    pages: Path,
    serve: Serve,
    make_app: MakeApp,
    make_server_app: MakeServerApp,
    token: MakeToken,
    work: Work,
) -> AsyncIterator[Lab]:
    """A browser, pages, a proxy, a server and a worker."""
    site = await serve(_site(pages))
    app: Forge = make_app(server={"allowed_origins": [site]})
    app.register(export_users)
    stage.reset()
    context = await browser.new_context()
    lab = Lab(context, site, lambda: make_server_app(app), token)
    await work(app)
    address = await lab.start_server()
    lab.proxy = await Proxy.to_http(address)
    async with lab.proxy:
        yield lab
        stage.advance(100)
        await context.close()
    await lab.stop_server()
    assert lab.errors == []


def _site(pages: Path) -> FastAPI:
    site = FastAPI()
    site.mount("/", StaticFiles(directory=pages))
    return site
