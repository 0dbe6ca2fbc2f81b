"""One job: what happened to it, why it waits, and what can be done with it."""

import json
from uuid import uuid4

import pytest
from playwright.async_api import Locator, Page, expect

from forge import JobFailed
from tests.browser.dashboard.conftest import ROLES, Dashboard, picture, shown_routes
from tests.browser.dashboard.jobs import HOSTILE, stage

LARGE = 2**63 - 1
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


def panel(page: Page, title: str) -> Locator:
    return page.locator("section.panel", has=page.get_by_role("heading", name=title, exact=True))


async def test_job_tells_its_story_with_logs_errors_and_relatives(dashboard: Dashboard) -> None:
    run = uuid4()
    job = await dashboard.app.dispatch(
        "import_orders",
        {"name": HOSTILE},
        auth={"name": HOSTILE},
        meta={"origin": HOSTILE},
        correlation_id=run,
    )
    await job.result()
    page = await dashboard.open(f"/jobs/{job.id}")
    timeline = panel(page, "Timeline")

    await expect(timeline.get_by_text("attempt 1 failed")).to_be_visible()
    await expect(timeline.locator(".note", has_text="ConnectionError: storage")).to_be_visible()
    await expect(timeline.locator("summary", has_text="2 log lines")).to_have_count(2)
    await expect(timeline.get_by_text("skipped a row")).to_have_count(2)
    await expect(timeline.get_by_text("row=7")).to_have_count(2)
    await timeline.locator("summary", has_text="traceback").click()
    await expect(timeline.locator("pre")).to_contain_text("in import_orders")
    await expect(timeline.get_by_text("attempt 2 completed")).to_be_visible()
    await expect(timeline.get_by_text("onerror=alert(1)")).to_have_count(3)
    await expect(panel(page, "Facts").get_by_text("onerror=alert(1)")).to_have_count(1)
    for title in ("Caller", "Metadata"):
        await expect(panel(page, title).get_by_text("onerror=alert(1)")).to_have_count(1)
    await picture(page, "job-story")

    related = panel(page, "Related jobs")
    await expect(related.get_by_role("heading")).to_contain_text(
        ["Related jobs", "Dispatched by this job", "Same correlation"]
    )
    await related.get_by_role("link", name="greet").first.click()
    await expect(related.get_by_role("link", name="import_orders")).to_have_count(2)
    await related.locator("h3", has_text="Same correlation").get_by_role("link").click()
    await expect(page.locator("tr[data-row]")).to_have_count(2)
    assert page.url.endswith(f"#/jobs?correlation_id={run}")


async def test_job_is_run_again_with_an_edited_input(dashboard: Dashboard) -> None:
    stage.advance(100)
    job = await dashboard.app.dispatch("export_users", {"format": "csv", "rows": 3})
    await job.result()
    page = await dashboard.open(f"/jobs/{job.id}")
    await page.get_by_role("button", name="Rerun job…").click()
    dialog = page.get_by_role("dialog")
    text = dialog.get_by_label("Input, as JSON")
    submit = dialog.get_by_role("button", name="Rerun job")

    await text.fill('{"format": "csv", "rows": }')
    await expect(dialog.get_by_text("Not JSON:")).to_be_visible()
    await expect(submit).to_be_disabled()
    await text.fill('{"format": "csv", "rows": "many"}')
    dashboard.provoke("422")
    await expect(dialog.locator(".state", has_text="$.rows")).to_be_visible()
    await expect(submit).to_be_disabled()
    await text.fill('{"format": "pdf", "rows": 3}')
    await expect(dialog.get_by_text("Valid.")).to_be_visible()
    await dialog.get_by_label("Reason").fill("they want PDF")
    await expect(dialog.locator(".command").first).to_contain_text('{"format":"pdf"}')
    await picture(page, "job-rerun")
    await submit.click()
    await page.get_by_role("link", name="Open it").click()

    await expect(panel(page, "Input").get_by_text('format: "pdf"')).to_be_visible()
    await expect(panel(page, "Related jobs").get_by_text("Rerun of")).to_be_visible()
    await expect(page.locator(".row [data-status=completed]").first).to_be_visible()
    assert ("job_rerun", "ann", "they want PDF") in await dashboard.audit()


async def test_job_links_to_its_trace(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("greet", {}, delay="1h", traceparent=TRACEPARENT)

    page = await dashboard.open(f"/jobs/{job.id}")

    link = panel(page, "Facts").get_by_role("link", name=TRACE_ID)
    await expect(link).to_have_attribute("href", f"https://traces.example/{TRACE_ID}?tab=1")


async def test_waiting_job_says_why_it_does_not_run(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("greet", {}, delay="1h")
    page = await dashboard.open(f"/jobs/{job.id}")
    why = page.locator("[data-reason]")
    await expect(why).to_have_attribute("data-reason", "due_later")
    await expect(why).to_contain_text("It is scheduled for")
    await picture(page, "job-waiting")

    await dashboard.app.pause(type="greet", reason="the printer burns")
    await (await dashboard.app.run_now(job.id)).result()

    await expect(why).to_contain_text("the printer burns")
    await expect(panel(page, "Timeline").get_by_text("due", exact=True)).to_have_count(0)


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
    await expect(page.locator("button", has_text="Cancel job…")).to_be_disabled()
    events = await dashboard.audit()
    assert ("job_cancelled", "ann", "wrong customer's data") in events


async def test_waiting_job_gets_another_time_priority_and_queue(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("greet", {}, delay="1h")
    page = await dashboard.open(f"/jobs/{job.id}")
    facts, dialog = panel(page, "Facts"), page.get_by_role("dialog")
    menu = page.locator("details.menu")

    async def change(button: str, label: str, value: str) -> None:
        if not await menu.evaluate("(one) => one.open"):
            await menu.locator("summary").click()
        await page.get_by_role("button", name=f"{button}…").click()
        field = dialog.get_by_label(label)
        if await field.evaluate("(one) => one.tagName") == "SELECT":
            await field.select_option(value)
        else:
            await field.fill(value)
        await dialog.get_by_label("Reason").fill("the customer waits")
        await dialog.get_by_role("button", name=button, exact=True).click()
        await expect(dialog).to_have_count(0)

    await change("Change priority", "Priority", "critical")
    await expect(facts.get_by_text("default · critical")).to_be_visible()
    await change("Move to another queue", "Queue", "imports")
    await expect(facts.get_by_text("imports · critical")).to_be_visible()
    await change("Reschedule job", "Run in", "3h")
    await expect(facts.get_by_text("in 2 h")).to_be_visible()

    events = [event for event, actor, notes in await dashboard.audit() if actor == "ann"]
    assert sorted(events) == ["job_moved", "job_reprioritised", "job_rescheduled"]


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
        "POST /_api/jobs/{job_id}/rerun",
        "POST /_api/jobs/{job_id}/reschedule",
        "POST /_api/jobs/{job_id}/reprioritise",
        "POST /_api/jobs/{job_id}/move",
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


async def test_large_integers_are_intact_and_large_payloads_are_shown_in_parts(
    dashboard: Dashboard,
) -> None:
    sent: dict[str, object] = {"order": LARGE, "text": "9007199254740993"}
    sent |= {"rows": list(range(1500)), "note": "x" * 5000 + " the end"}
    job = await dashboard.app.dispatch("greet", sent)
    await job.result()
    await dashboard.context.grant_permissions(["clipboard-read", "clipboard-write"])

    page = await dashboard.open(f"/jobs/{job.id}")

    await expect(page.get_by_text(f"order: {LARGE}")).to_have_count(2)
    await expect(page.get_by_text('text: "9007199254740993"')).to_have_count(2)
    input = panel(page, "Input")
    await expect(input.locator(".leaf")).to_have_count(3)
    await picture(page, "job-large")
    await input.get_by_role("button", name="rows: [1,500]").click()
    await expect(input.locator(".leaf")).to_have_count(103)
    await input.get_by_role("button", name="show more: 1,400 are left").click()
    await expect(input.locator(".leaf")).to_have_count(1103)
    await expect(input.get_by_text("the end")).to_have_count(0)
    await input.get_by_role("button", name="show all").click()
    await expect(input.get_by_text("the end")).to_be_visible()
    await input.get_by_role("button", name="copy").click()
    await expect(input.get_by_text("copied", exact=True)).to_be_visible()
    assert json.loads(await page.evaluate("navigator.clipboard.readText()")) == sent
    async with page.expect_download() as download:
        await input.get_by_role("button", name="download input").click()
    saved = await download.value
    assert saved.suggested_filename == "input.json"
    assert json.loads((await saved.path()).read_text()) == sent
