"""The page on live progress: its files as printed, from the click to the end of the job."""

import re
import sys
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.cli.command import Project
from tests.faults.kit.process import spawn, until
from tests.surface.page_code import write_files
from tests.surface.pages import CHECKOUT

PAGE = CHECKOUT / "docs" / "howto" / "live-progress.md"
# Milliseconds; the job takes two seconds.
PATIENCE = 30_000


async def test_the_page_shows_the_progress_of_the_export_it_starts(
    browser: Browser, database_url: str, tmp_path: Path
) -> None:
    write_files(PAGE, tmp_path)
    project = Project(database_url, tmp_path)
    command = [sys.executable, "-m", "uvicorn", "web:site", "--port", "0"]
    with (
        project.worker(app="jobs:app"),
        spawn(command, project.env, cwd=tmp_path) as site,
    ):
        await until(lambda: "running on" in site.output() or not site.is_alive, 60, "it runs")
        (address,) = re.findall(r"running on (http://\S+)", site.output())
        page = await browser.new_page()
        await page.goto(address)

        await page.get_by_role("button", name="Export").click()

        text = page.locator("output")
        await expect(text).to_have_text(re.compile(r"^\d+ of 100$"), timeout=PATIENCE)
        await expect(text).to_have_text("100 users", timeout=PATIENCE)
        assert await page.locator("progress").get_attribute("value") == "100"
