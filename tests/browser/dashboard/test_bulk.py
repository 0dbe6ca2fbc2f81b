"""Actions on many jobs of the list: chosen rows, or all that match, with a preview and progress."""

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.dashboard.conftest import Dashboard, picture
from tests.browser.dashboard.test_everywhere import BAD_DIALOG, NARROW


async def choose(page: Page, *rows: int) -> None:
    for row in rows:
        await page.locator("tr[data-row]").nth(row).get_by_role("checkbox").check()


async def start(page: Page, button: str, reason: str) -> Locator:
    """Open the dialog of a button, give the reason, and return the dialog."""
    await page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill(reason)
    return dialog


async def test_chosen_jobs_are_cancelled_after_a_preview(dashboard: Dashboard) -> None:
    made = [await dashboard.app.dispatch("greet", {"n": n}, delay="1h") for n in range(4)]
    page = await dashboard.open("/jobs")
    await expect(page.locator("tr[data-row]")).to_have_count(4)

    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await choose(page, 2)
    await expect(page.get_by_role("group", name="Selected jobs")).to_contain_text("2 selected")
    dialog = await start(page, "Cancel 2 selected…", "wrong template")
    await expect(dialog.get_by_text("2 jobs now")).to_be_visible()
    await expect(dialog.get_by_role("listitem")).to_have_count(2)
    await expect(dialog.locator(".command").first).to_contain_text("forge jobs bulk cancel --id")
    await picture(page, "jobs-bulk-preview")
    await page.set_viewport_size({"width": NARROW, "height": 740})
    assert await page.evaluate(BAD_DIALOG) == []
    await picture(page, "jobs-bulk-preview")
    await page.set_viewport_size({"width": 1280, "height": 900})
    await dialog.get_by_role("button", name="Cancel 2 selected").click()

    await expect(page.get_by_role("region", name="Bulk action")).to_contain_text("2 done")
    await expect(page.locator("tr [data-status=cancelled]")).to_have_count(2)
    assert ("job_bulk_requested", "ann", "wrong template") in await dashboard.audit()
    statuses = [(await job.get()).status for job in made]
    assert sorted(statuses) == ["cancelled", "cancelled", "pending", "pending"]


async def test_all_that_match_are_changed_at_a_rate_with_progress(
    dashboard: Dashboard, psql: Any
) -> None:
    inputs = [{"n": n, "to": "bob" if n else "cid"} for n in range(121)]
    await dashboard.app.dispatch_many("greet", inputs, delay="1h")
    await dashboard.app.dispatch("export_users", {}, delay="1h")
    page = await dashboard.open("/jobs?type=greet&status=pending&input=to%3Dbob")
    await expect(page.locator("tr[data-row]")).to_have_count(50)

    await page.get_by_role("checkbox", name="Select all rows").check()
    await page.get_by_role("button", name="Select all that match these filters").click()
    dialog = await start(page, "Change priority of all that match…", "the customer waits")
    submit = dialog.get_by_role("button", name="Change priority of all that match")
    await expect(dialog.get_by_text("120 jobs now; the newest")).to_be_visible()
    await expect(submit).to_be_disabled()
    await dialog.get_by_label("New priority").select_option("high")
    await dialog.get_by_label("Jobs per second, at most").fill("100")
    await submit.click()

    action = page.get_by_role("region", name="Bulk action")
    await expect(action.get_by_role("progressbar")).to_be_visible()
    await picture(page, "jobs-bulk-progress")
    await expect(action).to_contain_text("120 done")
    found = await psql.fetch("select job_type, priority, count(*) from forge_jobs group by 1, 2")
    counts = {(row["job_type"], row["priority"]): row["count"] for row in found}
    assert (counts[("greet", 75)], counts[("greet", 50)]) == (120, 1)
    assert counts[("export_users", 50)] == 1


async def test_what_cannot_be_changed_is_said_before(dashboard: Dashboard) -> None:
    await dashboard.app.dispatch("greet", {}, delay="1h")
    page = await dashboard.open("/jobs")

    await choose(page, 0)
    dialog = await start(page, "Rerun 1 selected…", "again")

    await expect(dialog.get_by_text("None of these jobs can be changed")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Rerun 1 selected")).to_be_disabled()


async def test_who_may_not_act_on_many_cannot_select(dashboard: Dashboard) -> None:
    await dashboard.app.dispatch("greet", {}, delay="1h")

    for roles in (("user",), ("manager", "staff", "viewer")):
        page = await dashboard.open("/jobs", *roles)
        await expect(page.locator("tr[data-row]")).to_have_count(1)
        assert await page.get_by_role("checkbox").count() == 0
