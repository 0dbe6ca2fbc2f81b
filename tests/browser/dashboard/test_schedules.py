"""Schedules: rules in words, next and last runs, enable, disable, run now, edits."""

import pytest
from playwright.async_api import Page, expect

from forge import ScheduleRecord
from tests.browser.dashboard.conftest import MANAGER, Dashboard, picture
from tests.browser.dashboard.jobs import HOSTILE
from tests.browser.dashboard.test_dead_letters import pictures
from tests.browser.dashboard.test_job import shown_routes
from tests.faults.kit.process import until

ACTIONS = {
    "POST /_api/schedules/{schedule_id}/run",
    "POST /_api/schedules/{schedule_id}/disable",
    "PATCH /_api/schedules/{schedule_id}",
}


async def ran(dashboard: Dashboard, schedule: ScheduleRecord, times: int) -> None:
    """Run a schedule now, as often as this."""
    schedules = dashboard.app.schedules
    for number in range(times):
        before = len((await schedules.get(schedule.type, schedule.key)).recent_runs)
        await schedules.run_now(schedule.type, schedule.key)

        async def is_over(before: int = before) -> bool:
            found = await schedules.get(schedule.type, schedule.key)
            return len(found.recent_runs) > before and found.running_since is None

        await until(is_over, 20, f"run {number} is over")


async def nightly(dashboard: Dashboard) -> ScheduleRecord:
    return await dashboard.app.schedules.ensure(
        "clean_up", "eu", {"folder": "/exports"}, cron="0 3 * * *", tz="Asia/Tokyo"
    )


async def open_edit(page: Page) -> None:
    await page.get_by_role("button", name="Edit schedule…").click()
    await expect(page.get_by_role("dialog").get_by_role("table", name="Next runs")).to_be_visible()


async def test_schedule_shows_its_runs_and_is_run_disabled_and_enabled(
    dashboard: Dashboard,
) -> None:
    await nightly(dashboard)
    broken = await dashboard.app.schedules.ensure(
        "clean_up", HOSTILE, {"reason": HOSTILE, HOSTILE: "x"}, cron="0 4 1 * *"
    )
    await ran(dashboard, broken, 1)
    page = await dashboard.open("/schedules")
    await expect(page.get_by_text("2 schedules, 1 failing")).to_be_visible()
    await expect(page.get_by_text("at 03:00 every day, Asia/Tokyo time")).to_be_visible()
    await expect(page.locator("[data-status=failing]")).to_contain_text("failing")
    await pictures(page, "schedules")

    row = page.locator("tr[data-row]", has_text="clean_up eu")
    await row.get_by_role("button", name="Disable").click()
    await expect(row.locator("[data-status=disabled]")).to_be_visible()
    await expect(row.get_by_role("button", name="Run now")).to_be_disabled()
    await row.get_by_role("button", name="Enable").click()
    await expect(row.locator("[data-status=enabled]")).to_be_visible()
    await row.get_by_role("link").click()

    own = page.get_by_role("table", name="Next runs")
    await expect(own.get_by_role("row")).to_have_count(6)
    await expect(own.get_by_text("03:00:00")).to_have_count(5)
    await expect(own.get_by_text("19:00:00")).to_have_count(5)  # in Paris, the reader's zone
    await page.get_by_role("button", name="Run now").click()
    await expect(page.get_by_text("12 files deleted")).to_be_visible()
    await pictures(page, "schedule")
    events = await dashboard.audit()
    assert [event for event, *_ in events] == [
        "schedule_run_requested",
        "schedule_enabled",
        "schedule_disabled",
    ]

    await dashboard.go(page, f"/schedules/{broken.id}")
    await expect(page.get_by_text("1 in a row failed.")).to_be_visible()
    await expect(page.get_by_text("onerror=alert(1)")).to_have_count(5)
    await picture(page, "schedule-failing")
    await page.get_by_role("link", name="All schedules").click()
    await page.get_by_label("Type").fill("none")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No schedules match these filters.")).to_be_visible()


async def test_edit_previews_its_rule_and_checks_its_payload(dashboard: Dashboard) -> None:
    schedule = await nightly(dashboard)
    page = await dashboard.open(f"/schedules/{schedule.id}")
    dialog = page.get_by_role("dialog")
    submit = dialog.get_by_role("button", name="Edit schedule")

    await open_edit(page)
    await expect(submit).to_be_disabled()
    await dialog.get_by_label("Cron expression").fill("61 * * * *")
    await expect(dialog.locator(".preview .error-text")).to_contain_text("61")
    await expect(submit).to_be_disabled()
    await dialog.get_by_label("Cron expression").fill("0 5 * * MON")
    await dialog.get_by_label("Time zone").fill("Europe/Paris")
    await expect(dialog.get_by_text("Runs at 05:00 on Monday")).to_be_visible()
    editor = dialog.get_by_label("Payload, as JSON")
    await editor.fill('{"folder": "/imports"}')
    await expect(dialog.get_by_text("Valid.")).to_be_visible()
    await expect(dialog.get_by_text("forge schedules edit")).to_contain_text(
        """--cron '0 5 * * MON' --tz Europe/Paris --patch '{"folder":"/imports"}'"""
    )
    await pictures(page, "schedule-edit")
    await dialog.get_by_label("Reason").fill("once a week is enough")
    await submit.click()

    await expect(page.get_by_text("edited by ann")).to_be_visible()
    await expect(page.get_by_text("Runs at 05:00 on Monday")).to_be_visible()
    await expect(page.get_by_text("/imports")).to_have_count(1)
    found = await dashboard.app.schedules.get("clean_up", "eu")
    assert (found.cron, found.tz, found.payload) == (
        "0 5 * * MON",
        "Europe/Paris",
        {"folder": "/imports"},
    )
    assert ("schedule_edited", "ann", "once a week is enough") in await dashboard.audit()
    await page.get_by_role("button", name="Reset to the code…").click()
    await expect(dialog.get_by_text("forge schedules edit")).to_contain_text("--reset")
    await page.keyboard.press("Escape")
    await open_edit(page)
    await dialog.locator("select").first.select_option("every")
    await dialog.get_by_role("textbox", name="Interval").fill("15m")
    await expect(dialog.get_by_text("Runs every 15 minutes")).to_be_visible()
    dashboard.provoke("422")


@pytest.mark.parametrize(
    "roles", [MANAGER, ("staff",), ("viewer", "staff", "manager")], ids=" ".join
)
async def test_buttons_are_those_that_the_caller_may_use(
    dashboard: Dashboard, roles: tuple[str, ...]
) -> None:
    schedule = await nightly(dashboard)
    page = await dashboard.open("/schedules", *roles)
    allowed = set((await dashboard.me(*roles))["allowed"])

    await expect(page.locator("tr[data-row]")).to_have_count(1)
    found = await shown_routes(page)
    await dashboard.go(page, f"/schedules/{schedule.id}")
    await expect(page.get_by_role("heading", name="Next runs")).to_be_visible()
    found |= await shown_routes(page)

    assert found == ACTIONS & allowed
    assert bool(found) == (roles == MANAGER)
