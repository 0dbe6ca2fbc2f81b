"""The screens of jobs: lists that are addresses, one job live, and what can be done with it."""

import re

import pytest
from playwright.async_api import Page, expect

from forge import JobFailed
from tests.browser.dashboard.conftest import MANAGER, Dashboard, picture
from tests.browser.dashboard.jobs import HOSTILE, stage

LARGE = 2**63 - 1
ROLES = [("viewer", "staff"), ("user",), ("user", "staff"), MANAGER]


async def shown_routes(page: Page) -> set[str]:
    """Return the routes of the actions that a page shows."""
    found = page.locator("[data-route]")
    return set(await found.evaluate_all("all => all.map((one) => one.dataset.route)"))


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
    await picture(page, "jobs")

    await page.get_by_role("link", name="dead letter 1").click()
    await expect(rows).to_have_count(1)
    assert page.url.endswith("#/jobs?status=dead_letter")
    await page.get_by_label("Type").select_option("greet")
    await expect(page.get_by_text("No jobs match these filters.")).to_be_visible()
    await page.go_back()
    await expect(rows).to_have_attribute("data-row", str(failed.id))


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


async def test_job_shows_its_progress_live_and_its_end(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("export_users", {"format": "csv", "rows": 3})
    page = await dashboard.open(f"/jobs/{job.id}")
    await expect(page.locator("[data-status=running]")).to_be_visible()

    stage.advance(60)
    await expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "60")
    await expect(page.get_by_text("row 60 of 100")).to_be_visible()
    await picture(page, "job-running")
    stage.advance(100)

    await expect(page.locator("[data-status=completed]")).to_be_visible()
    await expect(page.get_by_role("heading", name="Output")).to_be_visible()
    await expect(page.get_by_text("rows: 3")).to_have_count(2)


async def test_job_is_cancelled_with_a_reason(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("export_users", {})
    page = await dashboard.open(f"/jobs/{job.id}")
    await expect(page.locator("[data-status=running]")).to_be_visible()

    await page.get_by_role("button", name="Cancel job…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("wrong customer's data")
    await expect(dialog.get_by_text("forge jobs cancel")).to_contain_text(f"{job.id}")
    await picture(page, "job-cancel")
    await dialog.get_by_role("button", name="Cancel job").click()

    await expect(page.locator("[data-status=cancelled]")).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel job…")).to_be_disabled()
    events = await dashboard.audit()
    assert ("job_cancel_requested", "ann", "wrong customer's data") in events


async def test_waiting_job_runs_now_and_a_final_one_is_deleted(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("greet", {"text": "hello"}, delay="1h")
    page = await dashboard.open(f"/jobs/{job.id}")

    await page.get_by_role("button", name="Run now").click()
    await expect(page.locator("[data-status=completed]")).to_be_visible()
    await page.get_by_role("button", name="Delete job…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete job").click()
    await page.locator(".toast", has_text="Deletion requested.").get_by_role("link").click()
    await expect(page.get_by_role("heading", name="forge.delete")).to_be_visible()
    await expect(page.locator("[data-status=completed]")).to_be_visible()
    await page.go_back()

    await expect(page.get_by_text("Not found.")).to_be_visible()
    dashboard.provoke("404")


@pytest.mark.parametrize("roles", ROLES, ids=" ".join)
async def test_buttons_are_those_that_the_caller_may_use(
    dashboard: Dashboard, roles: tuple[str, ...]
) -> None:
    job = await dashboard.app.dispatch("greet", {}, delay="1h")
    everything = {
        "POST /_api/jobs/{job_id}/cancel",
        "POST /_api/jobs/{job_id}/run_now",
        "DELETE /_api/jobs/{job_id}",
    }

    page = await dashboard.open(f"/jobs/{job.id}", *roles)
    allowed = set((await dashboard.me(*roles))["allowed"])

    await expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    assert await shown_routes(page) == everything & allowed
    if "viewer" in roles:
        assert await shown_routes(page) == set()


async def test_hostile_text_is_shown_as_text(dashboard: Dashboard) -> None:
    options = {"queue": "default", "tags": [HOSTILE], "idempotency_key": HOSTILE}
    job = await dashboard.app.dispatch("break_down", {"reason": HOSTILE, HOSTILE: "x"}, **options)
    with pytest.raises(JobFailed):
        await job.result()

    page = await dashboard.open("/jobs")
    await expect(page.locator("td.what")).to_contain_text("onerror=alert(1)")
    await dashboard.go(page, f"/jobs/{job.id}")

    for title, count in (("Timeline", 2), ("Facts", 2), ("Input", 2)):
        panel = page.locator("section.panel", has=page.get_by_role("heading", name=title))
        await expect(panel.get_by_text("onerror=alert(1)")).to_have_count(count)
    assert await page.locator("main img").count() == 0
    await picture(page, "job-failed")


async def test_large_integers_are_intact(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("greet", {"order": LARGE, "text": "9007199254740993"})
    await job.result()

    page = await dashboard.open(f"/jobs/{job.id}")

    await expect(page.get_by_text(f"order: {LARGE}")).to_have_count(2)
    await expect(page.get_by_text('text: "9007199254740993"')).to_have_count(2)


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


async def test_outage_keeps_the_page_and_ends_by_itself(dashboard: Dashboard) -> None:
    await dashboard.app.dispatch("greet", {}, delay="1h")
    page = await dashboard.open("/jobs")
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    dashboard.provoke("ERR_CONNECTION_REFUSED")

    await dashboard.stop()
    await expect(page.get_by_role("button", name="reconnecting")).to_be_visible()
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await picture(page, "jobs-reconnecting")
    await dashboard.restart()

    await expect(page.get_by_role("button", name="live", exact=True)).to_be_visible()
