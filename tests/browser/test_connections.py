"""Pages whose connection breaks, in both frameworks: they show the present state again."""

from collections.abc import Awaitable, Callable

import pytest

from tests.browser.conftest import Lab
from tests.browser.jobs import stage
from tests.browser.lab_page import FRAMEWORKS, LabPage

SOCKETS = "upgrade: websocket"
# Milliseconds after which the client misses the answer to its heartbeat.
HEARTBEAT = 60_000
TEN_MINUTES = "10:00"


async def restarted_server(lab: Lab, page: LabPage) -> None:
    await lab.restart_server()


async def lost_connections(lab: Lab, page: LabPage) -> None:
    assert lab.proxy.reset() > 0


async def silent_connections(lab: Lab, page: LabPage) -> None:
    assert lab.proxy.silence() > 0
    await page.page.clock.run_for(HEARTBEAT)


async def swallowed_sockets(lab: Lab, page: LabPage) -> None:
    lab.proxy.swallow(matching=SOCKETS)
    await page.page.clock.run_for(HEARTBEAT)


async def laptop_that_sleeps(lab: Lab, page: LabPage) -> None:
    """Freeze the page, forget its connections, and let ten minutes pass."""
    browser = await lab.context.new_cdp_session(page.page)
    await browser.send("Page.setWebLifecycleState", {"state": "frozen"})
    assert lab.proxy.silence() > 0
    await browser.send("Page.setWebLifecycleState", {"state": "active"})
    await page.page.clock.fast_forward(TEN_MINUTES)


@FRAMEWORKS
@pytest.mark.parametrize(
    "fault",
    [restarted_server, lost_connections, silent_connections, swallowed_sockets, laptop_that_sleeps],
)
async def test_the_page_shows_the_present_state_after(
    lab: Lab, framework: str, fault: Callable[[Lab, LabPage], Awaitable[None]]
) -> None:
    page = await lab.open(framework, has_clock=True)
    tracker = page.tracker()
    await tracker.start()
    stage.advance(30)
    await tracker.shows("running", 30)

    await fault(lab, page)
    stage.advance(60)

    await tracker.shows("running", 60)
    stage.advance(100)
    await tracker.shows("completed", 100)
    assert await tracker.done() == {"count": 100}
    assert page.connections > 1
