"""The screen of the audit log: who requested what, when and why."""

from typing import Any
from uuid import uuid4

from playwright.async_api import expect

from forge.store import audit
from forge.store.connection.database import Database
from tests.browser.dashboard.conftest import Dashboard, picture, shown_routes
from tests.browser.dashboard.jobs import HOSTILE
from tests.store.placing import Psql


async def test_audit_filters_by_its_address_and_announces_new_events(
    dashboard: Dashboard, database: Database
) -> None:
    job_id = uuid4()
    for number in range(51):
        await database.run(audit.add("job_cancel_requested", "ann", 7, job_id, f"note {number}"))
    await dashboard.app.pause("greet", reason="the bucket is full", actor="bob")
    page = await dashboard.open("/audit")
    rows = page.locator("tr[data-row]")
    await expect(rows).to_have_count(50)
    await expect(rows.first).to_contain_text("the bucket is full")
    await picture(page, "audit")

    await dashboard.app.resume("greet", actor="bob")
    await page.get_by_role("button", name="1 new").click()
    await expect(rows.first).to_contain_text("pause removed")
    await page.get_by_role("link", name="Older").click()
    await expect(rows).to_have_count(3)
    await page.get_by_role("link", name="Newest").click()
    await expect(rows).to_have_count(50)

    await page.get_by_label("Actor", exact=True).fill("bob")
    await page.get_by_label("Actor", exact=True).press("Enter")
    await expect(rows).to_have_count(2)
    assert page.url.endswith("#/audit?actor=bob")
    await rows.last.get_by_role("button", name="pause added").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("type: ")).to_contain_text('"greet"')
    await picture(page, "audit-event")
    assert await shown_routes(page) == set()
    await dialog.get_by_role("button", name="Close").click()

    await page.get_by_label("Event", exact=True).fill("nothing_like_it")
    await page.get_by_label("Event", exact=True).press("Enter")
    await page.get_by_text("No events match these filters.").wait_for()


async def test_hostile_text_of_events_is_shown_as_text(
    dashboard: Dashboard, psql: "Psql[Any]"
) -> None:
    await psql.execute(
        "insert into forge_audit_events (event, actor, tenant_id, job_id, notes, detail) "
        "values (left($1, 64), $1, 9007199254740993, $2, $1, "
        "jsonb_build_object($1::text, $1::text))",
        HOSTILE,
        uuid4(),
    )

    page = await dashboard.open("/audit")
    row = page.locator("tr[data-row]")
    await expect(row.get_by_text("onerror=alert(1)")).to_have_count(3)
    await row.get_by_role("button").click()

    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("9007199254740993")).to_be_visible()
    await expect(dialog.get_by_text("onerror=alert(1)")).to_have_count(6)
    assert await page.locator("img").count() == 0
