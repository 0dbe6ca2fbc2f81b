"""Trackers in a real browser, in both frameworks: the verbs, and where a page ends them."""

import asyncio
from typing import Any

from playwright.async_api import Route, expect

from tests.browser.conftest import Lab
from tests.browser.jobs import stage
from tests.browser.lab_page import FRAMEWORKS, PATIENCE
from tests.faults.kit.process import until


@FRAMEWORKS
async def test_the_bar_moves_to_the_end(lab: Lab, framework: str) -> None:
    page = await lab.open(framework)
    tracker = page.tracker()

    await tracker.start()
    for percent in (0, 30, 70):
        stage.advance(percent)
        await tracker.shows("running", percent)
    stage.advance(100)

    await tracker.shows("completed", 100)
    assert await tracker.section.locator("p").inner_text() == "Export complete!"
    assert await tracker.done() == {"count": 100}
    await until(lambda: lab.followed == 0, 10, "a job that has ended is not followed")


@FRAMEWORKS
async def test_a_failed_job_shows_its_error_and_the_next_one_runs(lab: Lab, framework: str) -> None:
    page = await lab.open(framework)
    tracker = page.tracker()

    await tracker.start("pdf")
    await tracker.shows("failed")
    shown = await tracker.section.locator("p.error").inner_text()
    await tracker.start()
    await tracker.shows("running", 0)

    assert "PDF is not supported" in shown
    assert await tracker.section.locator("p.error").count() == 0


@FRAMEWORKS
async def test_cancel_ends_the_job(lab: Lab, framework: str) -> None:
    page = await lab.open(framework)
    tracker = page.tracker()
    await tracker.start()
    await tracker.shows("running", 0)

    await tracker.cancel()

    await tracker.shows("cancelled")


@FRAMEWORKS
async def test_cleanup_ends_the_subscription_and_not_the_job(
    lab: Lab, framework: str, psql: Any
) -> None:
    page = await lab.open(framework, count=2)
    for tracker in (page.tracker(0), page.tracker(1)):
        await tracker.start()
        await tracker.shows("running", 0)
    assert lab.followed == 2

    await page.leave()

    await until(lambda: lab.followed == 0, 10, "nothing is followed")
    assert await statuses(psql) == ["running", "running"]
    stage.advance(100)
    await until(lambda: _all_are(psql, "completed"), 30, "the jobs have completed")


@FRAMEWORKS
async def test_leaving_the_page_during_start_follows_nothing(
    lab: Lab, framework: str, psql: Any
) -> None:
    page = await lab.open(framework)
    held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    await page.page.route("**/dispatch", lambda route: held.set_result(route))
    starting = asyncio.create_task(page.tracker().start())
    request = await asyncio.wait_for(held, 30)

    await page.leave()
    await request.continue_()
    job_id = await asyncio.wait_for(starting, 30)

    assert [str(row["id"]) for row in await psql.fetch("select id from forge_jobs")] == [job_id]
    assert page.sockets == []
    assert lab.followed == 0


async def test_a_closed_tab_ends_its_subscription_and_another_tab_goes_on(lab: Lab) -> None:
    first, second = await lab.open("svelte"), await lab.open("react")
    job_id = await first.tracker().start()
    await second.tracker().attach(job_id)
    stage.advance(30)
    for page in (first, second):
        await page.tracker().shows("running", 30)

    await first.page.close()
    stage.advance(60)
    await second.tracker().shows("running", 60)
    assert lab.followed == 1
    await second.page.goto("about:blank")

    await until(lambda: lab.followed == 0, 10, "nothing is followed")


@FRAMEWORKS
async def test_200_trackers_of_a_page_share_one_socket(lab: Lab, framework: str) -> None:
    page = await lab.open(framework, count=200)

    await page.page.evaluate(
        "Promise.all(lab.trackers.map((tracker) => tracker.start({ format: 'csv' })))"
    )
    await until(lambda: lab.followed == 200, 30, "all jobs are followed")
    stage.advance(100)

    completed = page.page.locator("section[data-status=completed]")
    await expect(completed).to_have_count(200, timeout=PATIENCE)
    assert len(page.sockets) == 1
    await until(lambda: lab.followed == 0, 10, "nothing is followed")


async def statuses(psql: Any) -> list[str]:
    return [row["status"] for row in await psql.fetch("select status from forge_jobs")]


async def _all_are(psql: Any, status: str) -> bool:
    return set(await statuses(psql)) == {status}
