"""The screens of job types and queues: figures, who serves them, pauses, and dispatch by a form."""

import json
from typing import Any

import pytest
from playwright.async_api import Page, expect

from forge.store.connection.database import Database
from tests.browser.dashboard.conftest import (
    MANAGER,
    ROLES,
    Dashboard,
    picture,
    shown_routes,
)
from tests.browser.dashboard.figures import fill_statistics
from tests.browser.dashboard.jobs import HOSTILE
from tests.store.placing import Psql, insert, registered

DISPATCH = "POST /_api/jobs/{job_type}/dispatch"
PAUSE = "POST /_api/pauses"
RESUME = "DELETE /_api/pauses/{pause_id}"


async def cells(page: Page, name: str) -> list[str]:
    """Return the texts of a row."""
    row = page.locator(f"tr[data-row='{name}']")
    return [text.strip() for text in await row.locator("td").all_inner_texts()]


async def test_types_and_queues_show_their_figures(dashboard: Dashboard, psql: "Psql[Any]") -> None:
    await fill_statistics(psql, "greet", "default")
    await fill_statistics(psql, "export_users", "reports", minutes=5)
    for _ in range(3):
        await insert(psql, job_type="old_report", queue="files")
    page = await dashboard.open("/types")

    await expect(page.get_by_text("1 of 7 job types has no worker: old_report.")).to_be_visible()
    await expect(page.locator("tr[data-row='greet']")).to_contain_text("8.3 %")
    *_, failed, waiting, _, running, workers = await cells(page, "greet")
    assert (failed, waiting, running, workers) == ("8.3 %", "0", "0", "1")
    assert (await cells(page, "old_report"))[-4:-1:2] == ["3", "0"]
    await picture(page, "types")
    await page.get_by_label("Sort by").select_option("rate")
    await expect(page.locator("tr[data-row]").first).to_have_attribute("data-row", "greet")
    await page.get_by_label("Filter job types by name").fill("EXPORT")
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    assert page.url.endswith("#/types?sort=rate&name=EXPORT")

    await page.get_by_role("link", name="export_users").click()
    await expect(page.get_by_text("Nothing waits. 1 worker serves it.")).to_be_visible()
    await expect(page.get_by_text("55 completed, 5 failed")).to_be_visible()
    await expect(page.locator(".uplot canvas")).to_have_count(4)
    await expect(page.get_by_role("img", name="Waiting time over the last 1 h")).to_be_visible()
    await picture(page, "type")
    await page.get_by_role("link", name="15 m").click()
    assert page.url.endswith("?last=15m")

    await dashboard.go(page, "/queues")
    await expect(page.get_by_text("the oldest job waits in files")).to_be_visible()
    assert (await cells(page, "reports"))[1] == "export_users"
    await picture(page, "queues")
    await page.get_by_role("link", name="files").click()
    await expect(page.get_by_text("3 jobs wait, the oldest for")).to_be_visible()
    await expect(page.locator("tr[data-row='old_report']")).to_be_visible()
    await picture(page, "queue")


async def test_type_is_paused_and_resumed_with_a_reason(dashboard: Dashboard) -> None:
    page = await dashboard.open("/types/greet")

    await page.get_by_role("button", name="Pause job type…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Pause job type")).to_be_disabled()
    await dialog.get_by_label("How long").select_option("4 hours")
    await dialog.get_by_label("Reason").fill("the bucket is full")
    command = "forge pause --type greet --for 4h --reason 'the bucket is full'"
    await expect(dialog.get_by_text(command)).to_be_visible()
    await picture(page, "type-pause")
    await dialog.get_by_role("button", name="Pause job type").click()
    await expect(page.get_by_role("list", name="Pauses in effect")).to_contain_text("by ann")
    await picture(page, "type-paused")
    await page.get_by_role("button", name="Resume greet").click()
    await expect(page.get_by_role("list", name="Pauses in effect")).to_have_count(0)

    await dashboard.go(page, "/queues/images")
    await page.get_by_role("button", name="Pause queue…").click()
    await page.get_by_role("dialog").get_by_label("Reason").fill("storage moves")
    await page.get_by_role("dialog").get_by_role("button", name="Pause queue").click()
    await expect(page.get_by_role("list", name="Pauses in effect")).to_contain_text("queue images")
    await dashboard.go(page, "/queues")
    await page.get_by_role("button", name="Resume queue images").click()
    await expect(page.get_by_role("list", name="Pauses in effect")).to_have_count(0)

    events = [event for event in await dashboard.audit() if event[0].startswith("pause")]
    assert events == [
        ("pause_removed", "ann", None),
        ("pause_added", "ann", "storage moves"),
        ("pause_removed", "ann", None),
        ("pause_added", "ann", "the bucket is full"),
    ]


async def test_job_is_dispatched_from_a_form(dashboard: Dashboard) -> None:
    page = await dashboard.open("/types/resize")

    await page.get_by_role("button", name="Dispatch job…").click()
    dialog = page.get_by_role("dialog")
    submit = dialog.get_by_role("button", name="Dispatch job")
    await expect(submit).to_be_disabled()
    await dialog.get_by_label("image_id").fill("9007199254740993")
    await dialog.get_by_label("format").select_option("webp")
    await dialog.get_by_label("is_public").select_option("true")
    rest = dialog.get_by_label("As JSON: sizes")
    await rest.fill('{"sizes": ["large"]}')
    await dialog.get_by_text("Options").click()
    await dialog.get_by_label("Priority").select_option("high")
    await dialog.get_by_label("Tags").fill("nightly, it's mine")
    await picture(page, "type-dispatch")
    await submit.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("sizes")
    await picture(page, "type-dispatch-rejected")
    await rest.fill('{"sizes": [100]}')
    command = dialog.locator(".command code").first
    await expect(command).to_contain_text(
        "$ forge dispatch resize "
        '\'{"sizes":[100],"image_id":9007199254740993,"format":"webp","is_public":true}\' '
        "--priority high --tag nightly --tag 'it'\\''s mine'"
    )
    await submit.click()

    await page.locator(".toast", has_text="Dispatched resize.").get_by_role("link").click()
    await expect(page.locator("[data-status=completed]")).to_be_visible()
    await expect(page.get_by_text("image_id: 9007199254740993")).to_have_count(2)
    dashboard.provoke("422")


async def test_input_without_a_schema_is_written_as_json(dashboard: Dashboard) -> None:
    page = await dashboard.open("/types/greet")
    await page.get_by_role("button", name="Dispatch job…").click()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("Input, as JSON").or_(dialog.get_by_label("Further fields"))

    await field.fill('{"order": 9223372036854775807')
    await expect(dialog.get_by_role("button", name="Dispatch job")).to_be_disabled()
    await field.fill('{"order": 9223372036854775807}')
    await dialog.get_by_role("button", name="Dispatch job").click()

    await page.locator(".toast").get_by_role("link").click()
    await expect(page.get_by_text("order: 9223372036854775807").first).to_be_visible()


@pytest.mark.parametrize("roles", ROLES, ids=" ".join)
async def test_buttons_of_types_and_queues_are_those_that_the_caller_may_use(
    dashboard: Dashboard, roles: tuple[str, ...]
) -> None:
    await dashboard.app.pause("greet", queue="default", reason="a test")
    allowed = set((await dashboard.me(*roles))["allowed"])
    page = await dashboard.open("/types/greet", *roles)
    await expect(page.get_by_role("heading", name="Facts")).to_be_visible()
    if "staff" in roles:
        await expect(page.get_by_role("list", name="Pauses in effect")).to_be_visible()

    assert await shown_routes(page) == {DISPATCH, PAUSE, RESUME} & allowed
    await dashboard.go(page, "/queues/default")
    await expect(page.get_by_role("heading", name="Job types", exact=True)).to_be_visible()
    if "staff" in roles:
        await expect(page.get_by_role("list", name="Pauses in effect")).to_be_visible()
    assert await shown_routes(page) == {PAUSE, RESUME} & allowed
    assert ({PAUSE, RESUME} <= allowed) is (roles == MANAGER)


async def test_hostile_text_of_types_and_pauses_is_shown_as_text(
    dashboard: Dashboard, database: Database, psql: "Psql[Any]"
) -> None:
    await registered(database, hostname=HOSTILE, job_types=[HOSTILE], queues=[HOSTILE])
    await psql.execute(
        "insert into forge_job_types (name, queue, description, worker_capability, input_schema) "
        "values ($1::text, $1::text, $1::text, $1::text, $2::text::jsonb)",
        HOSTILE,
        json.dumps({"properties": {HOSTILE: {"type": "string", "description": HOSTILE}}}),
    )
    await dashboard.app.pause(HOSTILE, queue=HOSTILE, reason=HOSTILE, actor=HOSTILE)
    await insert(psql, job_type=HOSTILE, queue=HOSTILE)
    page = await dashboard.open("/types")
    await expect(page.locator("tr[data-row]").get_by_text("onerror=alert(1)")).to_have_count(2)

    await page.locator("tr[data-row]").get_by_role("link", name="onerror").first.click()
    await expect(page.get_by_role("heading", name="onerror=alert(1)")).to_be_visible()
    await page.get_by_role("button", name="Dispatch job…").click()
    await expect(page.get_by_role("dialog").get_by_text("onerror=alert(1)").first).to_be_visible()
    await picture(page, "type-hostile")
    await page.keyboard.press("Escape")
    assert await page.locator("main img[src]").count() == 0

    await dashboard.go(page, "/queues")
    await page.locator("tr[data-row]").get_by_role("link", name="onerror").first.click()
    await expect(page.get_by_role("heading", name="Queue")).to_contain_text("onerror=alert(1)")
    await page.get_by_text("3 jobs").or_(page.get_by_text("1 job waits")).wait_for()
    assert await page.locator("main img[src]").count() == 0
