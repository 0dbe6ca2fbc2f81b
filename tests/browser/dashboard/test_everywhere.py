"""What holds on every screen: accessible, by keyboard, in forced colours, narrow, in outages."""

import re
from functools import cache
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tools.dashboard import DASHBOARD
from tools.node import PackagesMissing, install

from tests.browser.dashboard.conftest import Dashboard, picture
from tests.browser.dashboard.jobs import HOSTILE
from tests.browser.dashboard.screens import fill, shows
from tests.faults.kit.proxy import Mode, Proxy
from tests.http.conftest import MakeServerApp

NARROW = 360
# Rules of WCAG 2.2 AA and the best practices of axe, in the page as it is.
RUN_AXE = """() => axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
        `${id} ${target.join(' ')}: ${failureSummary}`)))"""
# Elements that reach beyond the page on the right, apart from what scrolls by itself.
TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter((one) => {
    const { right, width } = one.getBoundingClientRect()
    if (!one.checkVisibility() || width === 0 || right <= innerWidth + 1) return false
    for (let above = one.parentElement; above; above = above.parentElement) {
        if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(above).overflowX)) return false
    }
    return getComputedStyle(one).position !== 'fixed'
}).map((one) => `${one.tagName} ${one.className}: ${one.textContent.trim().slice(0, 60)}`)"""


@cache
def axe() -> str:
    """Return the source of axe-core."""
    try:
        install(DASHBOARD)
    except PackagesMissing as missing:
        pytest.skip(str(missing))
    return (DASHBOARD / "node_modules" / "axe-core" / "axe.min.js").read_text()


# What is wrong with an open dialog on a phone.
BAD_DIALOG = """() => {
    const dialog = document.querySelector('dialog')
    const { left, right, top, bottom } = dialog.getBoundingClientRect()
    const rules = {
        'is wider than the page': left < 0 || right > innerWidth,
        'is higher than the page': top < 0 || bottom > innerHeight,
        'scrolls sideways': dialog.scrollWidth > dialog.clientWidth,
        'does not have the focus': !dialog.contains(document.activeElement),
        'shows no command': !dialog.querySelector('.commands'),
    }
    return Object.keys(rules).filter((rule) => rules[rule])
}"""


async def settle(page: Page) -> None:
    """Wait until the screen has loaded what it shows."""
    await expect(page.locator("main h1").first).to_be_visible()
    await expect(page.locator(".loading")).to_have_count(0)


async def test_every_screen_is_accessible_in_both_themes_and_fits_a_phone(
    dashboard: Dashboard,
) -> None:
    addresses = await fill(dashboard)
    paths = re.findall(r"path: '([^']+)'", (DASHBOARD / "src/screens/screens.ts").read_text())
    for path in paths:
        assert any(shows(path, address) for address in addresses.values()), path
    page = await dashboard.open("/")
    problems: list[str] = []
    opened: set[str] = set()
    await page.evaluate(axe())

    for name, address in addresses.items():
        await page.set_viewport_size({"width": 1280, "height": 900})
        await dashboard.go(page, address)
        await settle(page)
        for theme in ("light", "dark"):
            await page.get_by_label("Theme").select_option(theme)
            found = await page.evaluate(RUN_AXE)
            problems += [f"{name}, {theme}: {problem}" for problem in found]
        await picture(page, f"screen-{name}")
        await page.set_viewport_size({"width": NARROW, "height": 740})
        problems += [f"{name}, narrow: {one}" for one in await page.evaluate(TOO_WIDE)]
        await picture(page, f"screen-{name}")
        problems += [f"{name}, {problem}" for problem in await look_at_dialogs(page, opened)]

    assert problems == [], "\n".join(problems)
    assert len(opened) >= 14, opened


async def look_at_dialogs(page: Page, opened: set[str]) -> list[str]:
    """Open the dialogs that no screen before had, by keyboard; return what is wrong with them."""
    problems = []
    for button in await page.locator("main [data-route]:enabled", has_text="…").all():
        route = await button.get_attribute("data-route") or ""
        if route in opened:
            continue
        opened.add(route)
        await button.evaluate("(one) => one.closest('details')?.setAttribute('open', '')")
        await button.focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_be_visible()
        await expect(dialog.locator(".loading")).to_have_count(0)
        found = await page.evaluate(BAD_DIALOG)
        found += await page.evaluate(
            RUN_AXE.replace("document", "document.querySelector('dialog')")
        )
        problems += [f"{route}: {problem}" for problem in found]
        await picture(page, f"dialog-{'-'.join(re.findall(r'[a-z]+', route)[-2:])}")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await expect(button).to_be_focused()
    return problems


async def test_forced_colours_keep_what_colour_says(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("export_users", {})
    page = await dashboard.open("/jobs")
    await page.emulate_media(forced_colors="active")

    current = page.locator("nav a[aria-current]").first
    assert await computed(current, "borderTopWidth") == "2px"
    await expect(page.locator("[data-status]").first).to_contain_text("running")
    await dashboard.go(page, f"/jobs/{job.id}")
    bar = page.get_by_role("progressbar")
    assert await computed(bar, "borderTopWidth") == "1px"
    dot = await page.locator("section ol > li").first.evaluate(
        "(one) => getComputedStyle(one, '::after').backgroundColor"
    )
    assert dot != await computed(page.locator("body"), "backgroundColor")
    await page.get_by_role("button", name="Cancel job…").focus()
    assert await computed(page.locator(":focus"), "outlineStyle") == "solid"
    await picture(page, "job-forced-colours")


async def computed(locator: Any, name: str) -> str:
    value: str = await locator.evaluate(f"(one) => getComputedStyle(one).{name}")
    return value


async def test_everything_is_done_with_the_keyboard_alone(dashboard: Dashboard) -> None:
    job = await dashboard.app.dispatch("greet", {"n": 1}, delay="1h")
    page = await dashboard.new_page()
    await page.goto(dashboard.address)
    await expect(page.get_by_label("Token")).to_be_focused()
    await page.keyboard.type(dashboard.token("user", "staff", "manager"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("navigation", name="Screens")).to_be_visible()

    await page.keyboard.press("g")
    await page.keyboard.press("j")
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Cancel job…")).to_be_visible()
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.textContent") == "Cancel job…":
            break
    assert await computed(page.locator(":focus"), "outlineStyle") == "solid"
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Cancel job…")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.type("not needed")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")

    await expect(page.locator("[data-status=cancelled]").first).to_be_visible()
    assert ("job_cancelled", "ann", "not needed") in await dashboard.audit()
    assert (await dashboard.app.get(job.id)).status == "cancelled"
    dashboard.provoke("401")  # before the form is shown, the page asks for the host's session


async def test_database_that_goes_away_is_said_and_ends_by_itself(
    dashboard: Dashboard, api_url: str, make_server_app: MakeServerApp
) -> None:
    job = await dashboard.app.dispatch("greet", {"text": "hello"}, delay="1h")
    await dashboard.stop()
    async with await Proxy.open(api_url) as database:
        dashboard.api.state.forge.database_url = database.url()
        await dashboard.restart()
        page = await dashboard.open(f"/jobs/{job.id}")
        await expect(page.get_by_text("text:")).to_be_visible()
        dashboard.provoke("503")

        database.mode = Mode.RESET
        await expect(page.get_by_role("button", name="reconnecting")).to_be_visible()
        await expect(page.locator(".outage")).to_contain_text("What you see is from before")
        await expect(page.get_by_text("text:")).to_be_visible()
        await picture(page, "job-database-away")
        await page.get_by_role("button", name="Run now").click()
        await expect(page.locator(".toast")).to_contain_text("Could not run now")
        database.mode = Mode.PASS

        await expect(page.get_by_role("button", name="live", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Run now").click()
        await expect(page.locator("[data-status=completed]").first).to_be_visible()
        await page.close()


async def test_page_is_as_small_after_a_thousand_live_updates(
    dashboard: Dashboard, psql: Any
) -> None:
    job = await dashboard.app.dispatch("export_users", {})
    page = await dashboard.open(f"/jobs/{job.id}")
    await expect(page.locator("[data-status=running]")).to_be_visible()
    devtools = await page.context.new_cdp_session(page)

    await report(page, psql, job.id, range(100))
    before = await weigh(devtools)
    await report(page, psql, job.id, range(100, 1100))
    after = await weigh(devtools)

    assert await page.locator("main img").count() == 0
    assert after["nodes"] <= before["nodes"] + 50
    assert after["bytes"] <= before["bytes"] + 1_000_000


async def report(page: Page, psql: Any, job_id: Any, numbers: range) -> None:
    """Report progress; each report reaches the page before the next one is made."""
    for number in numbers:
        message = f"row {number} of {HOSTILE}"
        await psql.execute(REPORT, job_id, number % 100, message)
        await psql.execute("select pg_notify('forge_changes', $1)", job_id.hex)
        await page.wait_for_function(SHOWS, arg=message, polling="raf")


REPORT = "update forge_jobs set progress_percent = $2, progress_message = $3 where id = $1"
SHOWS = "(text) => document.querySelector('.progress p')?.textContent === text"


async def weigh(devtools: Any) -> dict[str, int]:
    """Return how many nodes and bytes the page has after a garbage collection."""
    await devtools.send("HeapProfiler.enable")
    await devtools.send("HeapProfiler.collectGarbage")
    counters = await devtools.send("Memory.getDOMCounters")
    heap = await devtools.send("Runtime.getHeapUsage")
    return {"nodes": counters["nodes"], "bytes": int(heap["usedSize"])}
