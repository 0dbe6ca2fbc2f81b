"""The start: is everything all right? And what `forge doctor` knows."""

import re
from typing import Any

from playwright.async_api import expect

from tests.browser.dashboard.conftest import Dashboard, picture, shown_routes
from tests.browser.dashboard.figures import fill_statistics
from tests.browser.dashboard.jobs import HOSTILE
from tests.store.placing import Psql, insert


async def test_overview_shows_figures_and_findings_with_what_to_do(
    dashboard: Dashboard, psql: "Psql[Any]"
) -> None:
    await fill_statistics(psql, "greet", "default")
    await fill_statistics(psql, "export_users", "reports")
    await insert(psql, job_type=HOSTILE, queue="default")
    await dashboard.app.pause("greet", reason=HOSTILE, actor="bob")
    page = await dashboard.open("/")

    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    await expect(page.get_by_text("look at these first.")).to_be_visible()
    unserved = page.locator("[data-finding=unserved_jobs]")
    await expect(unserved).to_contain_text("onerror=alert(1)")
    navigation = page.get_by_role("navigation", name="Screens")
    await expect(navigation.get_by_title(re.compile("^[0-9]+ findings$"))).to_be_visible()
    await expect(navigation.locator("[aria-current]")).to_have_text("Overview")
    await expect(page.get_by_text("1 worker alive")).to_be_visible()
    await expect(page.get_by_text("20 /min")).to_be_visible()
    await expect(page.locator(".uplot canvas")).to_have_count(4)
    await expect(page.locator("tr[data-row='greet']")).to_contain_text("8.3 %")
    assert await page.locator("main img[src]").count() == 0
    assert await shown_routes(page) == set()
    await picture(page, "overview")

    waiting = page.get_by_role("img", name="Waiting time")
    await waiting.scroll_into_view_if_needed()
    box = await waiting.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await expect(page.locator(".readout", has_text="p95")).to_be_visible()
    for period in ("15 m", "7 d", "30 d"):
        await page.get_by_role("link", name=period).click()
        await expect(page.get_by_role("img", name=f"last {period}")).to_have_count(4)


async def test_tenant_sees_its_outcomes_and_nothing_of_others(dashboard: Dashboard) -> None:
    page = await dashboard.open("/overview", "user", tenant=7)

    await expect(page.get_by_role("heading", name="Throughput")).to_be_visible()
    await expect(page.locator(".uplot canvas")).to_have_count(2)
    await expect(page.get_by_role("link", name="Database")).to_have_count(0)


async def test_database_lists_findings_and_checks_that_passed(
    dashboard: Dashboard, psql: "Psql[Any]"
) -> None:
    await insert(psql, job_type=HOSTILE, queue="default")
    page = await dashboard.open("/database")

    await expect(page.locator("[data-finding=unserved_jobs]")).to_contain_text("onerror=alert(1)")
    await expect(page.locator("[data-finding=migrations]")).to_contain_text("all migrations")
    await expect(page.get_by_role("heading", name="checks passed")).to_be_visible()
    assert await page.locator("main img[src]").count() == 0
    await picture(page, "database")
