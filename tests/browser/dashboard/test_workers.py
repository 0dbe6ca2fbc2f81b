"""The screens of workers: who does the work, what runs where, drain and resume."""

from typing import Any

from playwright.async_api import expect

from forge.store.connection.database import Database
from tests.browser.dashboard.conftest import (
    MANAGER,
    ROLES,
    Dashboard,
    picture,
    shown_routes,
)
from tests.browser.dashboard.jobs import HOSTILE, stage
from tests.store.placing import Psql, registered

DRAIN = "POST /_api/workers/{worker_id}/drain"
RESUME = "POST /_api/workers/{worker_id}/resume"


async def test_worker_shows_what_it_runs_and_is_drained_and_resumed(
    dashboard: Dashboard, database: Database, psql: "Psql[Any]"
) -> None:
    await registered(database, hostname="build-7", job_types=["greet"])
    await psql.execute(
        "update forge_workers set last_heartbeat = now() - interval '1 day' "
        "where hostname = 'build-7'"
    )
    job = await dashboard.app.dispatch("export_users", {})
    page = await dashboard.open("/workers")

    rows = page.locator("tr[data-row]")
    await expect(rows).to_have_count(2)
    await expect(
        page.get_by_text("1 worker claims jobs, 1 of 10 slots in use. 1 dead.")
    ).to_be_visible()
    living = rows.filter(has=page.locator("[data-status=alive]"))
    await expect(living.get_by_role("link", name="export_users")).to_have_attribute(
        "href", f"#/jobs/{job.id}"
    )
    await picture(page, "workers")

    await living.get_by_role("button", name="Drain worker…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("No other worker serves")
    await dialog.get_by_label("Reason").fill("the host is patched")
    await expect(dialog.get_by_text("forge workers drain")).to_contain_text("'the host is patched'")
    await picture(page, "worker-drain")
    await dialog.get_by_role("button", name="Drain worker").click()
    await page.locator("[data-status=drained]").wait_for()
    await expect(page.get_by_text("No worker claims jobs: everything waits.")).to_be_visible()

    await rows.filter(has=page.locator("[data-status=drained]")).get_by_role("link").first.click()
    await expect(page.get_by_text("the host is patched")).to_be_visible()
    await expect(page.get_by_role("table").get_by_role("link", name="export_users")).to_be_visible()
    await picture(page, "worker")
    await page.get_by_role("button", name="Resume worker").click()
    await page.locator("[data-status=alive]").wait_for()
    events = await dashboard.audit()
    assert ("worker_drained", "ann", "the host is patched") in events
    assert ("worker_resumed", "ann", None) in events
    stage.advance(100)


async def test_hostile_text_of_workers_is_shown_as_text(
    dashboard: Dashboard, database: Database, psql: "Psql[Any]"
) -> None:
    other = await registered(
        database, hostname=HOSTILE, capabilities=[HOSTILE], queues=[HOSTILE], job_types=[HOSTILE]
    )
    await psql.execute(
        "update forge_workers set drained_at = now(), drained_by = $1, drain_reason = $1, "
        "version = $1 where id = $2",
        HOSTILE,
        other.id,
    )

    page = await dashboard.open("/workers")
    row = page.locator(f"tr[data-row='{other.id}']")
    await expect(row.get_by_text("onerror=alert(1)")).to_have_count(2)
    await dashboard.go(page, f"/workers/{other.id}")

    await expect(page.get_by_role("heading", name="onerror=alert(1)")).to_be_visible()
    await expect(page.locator("main").get_by_text("onerror=alert(1)")).to_have_count(6)
    assert await page.locator("main img").count() == 0


async def test_buttons_of_workers_are_those_that_the_caller_may_use(dashboard: Dashboard) -> None:
    for roles in [roles for roles in ROLES if "staff" in roles]:
        page = await dashboard.open("/workers", *roles)
        await page.locator("tr[data-row]").first.wait_for()

        allowed = set((await dashboard.me(*roles))["allowed"])
        assert await shown_routes(page) == {DRAIN} & allowed
        assert ({DRAIN, RESUME} <= allowed) is (roles == MANAGER)
        await page.close()

    page = await dashboard.open("/workers", "user")
    await expect(page.get_by_text("do not include this screen")).to_be_visible()
