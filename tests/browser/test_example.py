"""`make trackers`: both pages of the example, from the first click to the end of the job."""

import asyncio
import re
import sys

import pytest
from playwright.async_api import Browser, expect

from tests.faults.kit.process import Child, spawn, until
from tests.surface.pages import CHECKOUT

# Milliseconds; the job takes four seconds.
PATIENCE = 30_000
START = [sys.executable, "-m", "examples.export_users"]


@pytest.fixture(name="example")
def example_fixture(chromium: object, packages: object, empty_url: str) -> Child:
    """The example on an empty database, as `make trackers` starts it."""
    with spawn(START, {"FORGE_DATABASE_URL": empty_url}, cwd=CHECKOUT) as child:
        yield child


async def test_both_pages_show_a_job_that_completes_fails_and_is_cancelled(
    example: Child, browser: Browser
) -> None:
    pattern = re.compile(r"^(\w+): +(http://\S+)$", re.MULTILINE)
    await until(lambda: "Ctrl-C" in example.output() or not example.is_alive, 60, "it runs")
    addresses = dict(pattern.findall(example.output()))
    assert addresses.keys() == {"Svelte", "React"}, example.output()

    await asyncio.gather(*(_use(browser, address) for address in addresses.values()))

    example.sigterm()
    assert await asyncio.to_thread(example.wait, 30) == 0
    assert "Traceback" not in example.output()


async def _use(browser: Browser, address: str) -> None:
    page, errors = await browser.new_page(), list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto(address)
    bar, widths = page.locator(".bar"), set[str]()

    await page.get_by_role("button", name="Export as CSV").click()
    for percent in (10, 40, 70, 100):
        await expect(bar).to_have_attribute("style", _at_least(percent), timeout=PATIENCE)
        widths.add(await bar.get_attribute("style") or "")
    await expect(page.get_by_text(re.compile("Export complete!|exported"))).to_be_visible()

    await page.get_by_role("button", name="PDF").click()
    await expect(page.locator(".error")).to_contain_text("PDF is not", timeout=PATIENCE)

    await page.get_by_role("button", name="Export as CSV").click()
    await expect(page.get_by_text("Processing")).to_be_visible(timeout=PATIENCE)
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_text("The export was cancelled.")).to_be_visible(timeout=PATIENCE)
    assert len(widths) > 1
    assert errors == []


def _at_least(percent: int) -> re.Pattern[str]:
    wider = "|".join(str(width) for width in range(percent, 101))
    return re.compile(rf"^width: (?:{wider})%;?$")
