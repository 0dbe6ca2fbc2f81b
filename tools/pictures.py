"""Take the pictures of the dashboard for the README and the docs: `python -m tools.pictures`.

The bakery of `make run` works for a while on a database of its own; Chromium then shows it.
"""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.async_api import Page, ViewportSize, async_playwright

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
CHROMIUM = Path(os.environ.get("FORGE_TEST_CHROMIUM", "/usr/bin/chromium"))
# Seconds of work, so that the charts have something to show.
WORK = float(os.environ.get("FORGE_PICTURES_AFTER", "180"))
SIZE: ViewportSize = {"width": 1120, "height": 700}


def main() -> None:
    """Take the pictures with a database in a temporary folder, as `make run` has one in .forge/."""
    with TemporaryDirectory(prefix="forge-pictures-") as folder:
        # A server started by root runs under another account, which needs access to its files.
        Path(folder).chmod(0o711)
        os.environ.pop("FORGE_DATABASE_URL", None)
        os.environ["FORGE_EMBEDDED_FOLDER"] = f"{folder}/forge"
        os.environ["FORGE_WORKER_SHUTDOWN_GRACE"] = "2s"
        asyncio.run(take())


async def take() -> None:
    """Start everything, wait, and write the pictures."""
    from examples.tour.app import app
    from examples.tour.processes import Processes
    from examples.tour.traffic import keep_busy

    async with app:
        await app.migrate()
        async with Processes() as processes:
            await processes.start_workers(2)
            link = await processes.start_server()
            customers = asyncio.ensure_future(keep_busy())
            try:
                await asyncio.sleep(WORK)
                await show(link)
            finally:
                customers.cancel()


async def show(link: str) -> None:
    """Open each screen and keep a picture of it."""
    FOLDER.mkdir(exist_ok=True)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=CHROMIUM, args=sandbox, chromium_sandbox=not sandbox
        )
        page = await browser.new_page(viewport=SIZE, locale="en-US", timezone_id="Europe/Paris")
        await page.goto(link)
        await page.get_by_role("navigation", name="Screens").wait_for()
        await keep(page, "overview", "/overview?last=15m")
        await keep(page, "jobs", "/jobs")
        await open_first(page, "export_orders", "running")
        await keep(page, "job")
        await open_first(page, "send_receipt", "dead_letter")
        await page.get_by_role("button", name="Rerun job…").click()
        field = page.get_by_label("Input, as JSON")
        text = await field.input_value()
        await field.fill(text.replace('"cakes": ', '"cakes": 1'))
        await page.get_by_text("Valid.").wait_for()
        await keep(page, "rerun")
        await page.keyboard.press("Escape")
        await page.get_by_label("Theme").select_option("dark")
        await keep(page, "dead-letters", "/dead-letters")
        await keep(page, "schedules", "/schedules")
        await browser.close()


async def open_first(page: Page, type: str, status: str) -> None:
    """Open the newest job of a type with a status."""
    address = f"/jobs?type={type}&status={status}"
    await page.evaluate("(path) => { location.hash = path }", address)
    # The rows from before stay until those that match have been loaded.
    rows = page.locator(f"tr[data-row]:has([data-status={status}])", has_text=type)
    await rows.first.locator("[data-open]").click()
    await page.get_by_role("heading", name="Timeline").wait_for()


async def keep(page: Page, name: str, address: str | None = None) -> None:
    """Keep a picture of a screen, as small as PNG can."""
    if address is not None:
        await page.evaluate("(path) => { location.hash = path }", address)
    await page.locator("main h1").first.wait_for()
    await page.locator(".loading").first.wait_for(state="detached")
    await page.wait_for_timeout(1500)
    await page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
