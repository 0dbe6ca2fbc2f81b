"""The list of jobs: filters that are addresses, new rows that wait, keys and outages."""

import asyncio
import re
from typing import Any
from uuid import uuid4

from playwright.async_api import Route, expect

from forge.core.new_job import DispatchOptions
from tests.browser.dashboard.conftest import Dashboard, picture

# More jobs than a search in the inputs reads at once.
CROWD = (
    "insert into forge_jobs (job_type, scheduled_at) "
    "select 'crowd', 'infinity' from generate_series(1, 2100)"
)


async def test_list_filters_by_its_address_and_announces_new_jobs(dashboard: Dashboard) -> None:
    await (await dashboard.app.dispatch("greet", {"text": "first"})).result()
    failed = await dashboard.app.dispatch("break_down", {})
    page = await dashboard.open("/jobs")
    rows = page.locator("tr[data-row]")
    await expect(rows).to_have_count(2)
    await expect(page.locator("[data-status=dead_letter]")).to_have_count(1)

    await dashboard.app.dispatch("greet", {"text": "second"})
    await page.get_by_role("button", name="1 new").wait_for()
    await expect(rows).to_have_count(2)
    await page.get_by_role("button", name="1 new").click()
    await expect(rows).to_have_count(3)
    await expect(page.locator("td time").first).to_have_attribute(
        "title", re.compile(r" Europe/Paris\n.* UTC$")
    )
    await picture(page, "jobs")

    await page.get_by_role("link", name="dead letter 1").click()
    await expect(rows).to_have_count(1)
    assert page.url.endswith("#/jobs?status=dead_letter")
    await page.get_by_label("Type").select_option("greet")
    await expect(page.get_by_text("No jobs match these filters.")).to_be_visible()
    await page.go_back()
    await expect(rows).to_have_attribute("data-row", str(failed.id))


async def test_paused_page_asks_for_nothing_and_then_says_what_is_new(
    dashboard: Dashboard,
) -> None:
    await dashboard.app.dispatch("greet", {}, delay="1h")
    page, live = await dashboard.open("/jobs"), await dashboard.open("/jobs")
    rows = page.locator("tr[data-row]")
    for one in (page, live):
        await expect(one.locator("tr[data-row]")).to_have_count(1)
    await page.wait_for_load_state("networkidle")

    await page.get_by_role("button", name="live", exact=True).click()
    await expect(page.get_by_text("Paused.")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await dashboard.app.dispatch_many("greet", [{"n": n} for n in range(3)], delay="1h")
    await live.get_by_role("button", name="3 new").wait_for()
    assert asked == []
    await expect(page.get_by_role("button", name="new")).to_have_count(0)

    await page.get_by_role("button", name="paused").click()
    await page.get_by_role("button", name="3 new").wait_for()
    await expect(rows).to_have_count(1)
    await page.keyboard.press("n")
    await expect(rows).to_have_count(4)
    await expect(page.get_by_role("button", name="new")).to_have_count(0)


async def test_pages_continue_by_cursor_and_back_returns(dashboard: Dashboard) -> None:
    await dashboard.app.dispatch_many("greet", [{"n": n} for n in range(60)], delay="1h")
    page = await dashboard.open("/jobs")
    rows = page.locator("tr[data-row]")
    await expect(rows).to_have_count(50)

    await page.get_by_role("link", name="Older").click()
    await expect(rows).to_have_count(10)
    assert "cursor=" in page.url
    await page.go_back()

    await expect(rows).to_have_count(50)


async def test_each_filter_is_in_the_address_and_reaches_the_server(
    dashboard: Dashboard, psql: Any
) -> None:
    first = await dashboard.app.dispatch("greet", {"order_id": 1}, delay="1h")
    options: DispatchOptions = {"tags": ["spring"], "idempotency_key": "k-2", "tenant_id": 7}
    options |= {"priority": "high", "queue": "slow", "correlation_id": uuid4(), "delay": "1h"}
    second = await dashboard.app.dispatch("greet", {"order_id": 42}, **options)
    page = await dashboard.open("/jobs")
    rows = page.locator("tr[data-row]")
    await expect(rows).to_have_count(2)
    await page.get_by_text("More filters").click()

    wanted = {
        "Queue": ("queue", "slow"),
        "Tag": ("tag", "spring"),
        "Value in the input": ("input", "order_id=42"),
        "Idempotency key": ("idempotency_key", "k-2"),
        "Correlation": ("correlation_id", f"{options['correlation_id']}"),
        "Tenant": ("tenant_id", "7"),
        "Text in the input": ("q", "42"),
    }
    for label, (name, value) in wanted.items():
        field = page.get_by_label(label)
        await field.fill(value)
        await field.press("Enter")
        await expect(rows).to_have_count(1)
        await expect(rows).to_have_attribute("data-row", str(second.id))
        assert f"{name}={value.replace('=', '%3D')}" in page.url
        await field.fill("")
        await field.press("Enter")
        await expect(rows).to_have_count(2)
    for label, value, count in (("Priority", "high", 1), ("Created", "15m", 1)):
        await page.get_by_label(label).select_option(value)
        await expect(rows).to_have_count(count)
    await dashboard.go(page, f"/jobs?parent_id={first.id}&error_class=transient")
    await expect(page.get_by_text("More filters: 2 in use")).to_be_visible()
    await expect(page.get_by_text("No jobs match these filters.")).to_be_visible()

    await psql.execute(CROWD)
    await dashboard.go(page, "/jobs?input=order_id%3D42")
    await expect(page.get_by_text("Looked at up to 2,000 of the newest jobs")).to_be_visible()
    await expect(page.get_by_text("No match among the rows that were read.")).to_be_visible()
    await picture(page, "jobs-stopped-early")
    await page.get_by_role("link", name="continue").click()
    await expect(rows).to_have_attribute("data-row", str(second.id))


async def test_list_is_used_with_the_keyboard_alone(dashboard: Dashboard) -> None:
    await dashboard.app.dispatch_many("greet", [{"n": n} for n in range(3)], delay="1h")
    page = await dashboard.open("/jobs")
    rows = page.locator("tr[data-row]")
    await expect(rows).to_have_count(3)
    second = await rows.nth(1).get_attribute("data-row")

    for key in ("j", "j", "j", "k"):
        await page.keyboard.press(key)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    assert page.url.endswith(f"#/jobs/{second}")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.keyboard.type("nothing like this")
    await page.keyboard.press("Enter")

    await expect(page.get_by_text("No jobs match these filters.")).to_be_visible()
    assert re.search(r"#/jobs\?q=nothing(\+|%20)like", page.url)


async def test_outage_or_slow_server_keeps_the_page_and_says_so(dashboard: Dashboard) -> None:
    await dashboard.app.dispatch("greet", {}, delay="1h")
    page = await dashboard.open("/jobs")
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    dashboard.provoke("ERR_CONNECTION_REFUSED|ERR_INTERNET_DISCONNECTED")

    await page.context.set_offline(True)
    await expect(page.get_by_role("button", name="offline")).to_be_visible()
    await expect(page.locator(".outage")).to_contain_text("This computer is offline")
    await page.context.set_offline(False)
    await expect(page.get_by_role("button", name="live", exact=True)).to_be_visible()
    await dashboard.stop()
    await expect(page.get_by_role("button", name="reconnecting")).to_be_visible()
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await picture(page, "jobs-reconnecting")
    await dashboard.restart()

    await expect(page.get_by_role("button", name="live", exact=True)).to_be_visible()

    answer = asyncio.Event()

    async def wait(route: Route) -> None:
        await answer.wait()
        await route.continue_()

    await page.route("**/_api/workers*", wait)
    await dashboard.go(page, "/workers")
    await expect(page.get_by_text("Still loading the workers…")).to_be_visible()
    answer.set()
    await expect(page.locator("tr[data-row]")).to_have_count(1)
