"""Tokens that expire while a page is open, in both frameworks."""

from tests.browser.conftest import Lab
from tests.browser.jobs import stage
from tests.browser.lab_page import FRAMEWORKS
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.live.conftest import PassTime


@FRAMEWORKS
async def test_an_expired_token_is_renewed(lab: Lab, framework: str, pass_time: PassTime) -> None:
    page = await lab.open(framework)
    tracker = page.tracker()
    await tracker.start()
    await tracker.shows("running", 0)
    assert lab.tokens == 1

    pass_time(700)
    await until(lambda: lab.tokens == 2, 30, "the page has fetched another token")
    stage.advance(60)

    await tracker.shows("running", 60)
    await tracker.shows_error("")
    assert lab.tokens == 2


@FRAMEWORKS
async def test_a_token_that_is_not_renewed_is_an_error(
    lab: Lab, framework: str, pass_time: PassTime, token: MakeToken
) -> None:
    page = await lab.open(framework)
    tracker = page.tracker()
    await tracker.start()
    stage.advance(30)
    await tracker.shows("running", 30)

    lab.lifetime = -10
    pass_time(700)

    await tracker.shows_error("unauthenticated")
    await tracker.shows("running", 30)
    await tracker.shows_connection("idle")
    assert lab.tokens == 2
    await until(lambda: lab.followed == 0, 10, "nothing is followed")
