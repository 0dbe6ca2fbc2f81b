"""Dead letters: by cause, one by one, reprocessed with an edit or many at once, discarded."""

import json
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from forge import JobFailed
from tests.browser.dashboard.conftest import MANAGER, Dashboard, picture
from tests.browser.dashboard.jobs import HOSTILE, mail_server
from tests.browser.dashboard.test_job import shown_routes

KEY = "sk_live_0123456789abcdef0123"
REVIEWS = {
    "POST /api/jobs/admin/dlq/reprocess/",
    "POST /api/jobs/admin/dlq/discard/",
    "POST /api/jobs/admin/dlq/{dlq_id}/reprocess/",
    "POST /api/jobs/admin/dlq/{dlq_id}/discard/",
}


async def bury(dashboard: Dashboard, type: str, *inputs: Any, **options: Any) -> list[int]:
    """Make a dead letter of each input; return their ids, oldest first."""
    for input in inputs:
        with pytest.raises(JobFailed):
            await (await dashboard.app.dispatch(type, input, **options)).result(20)
    page = await dashboard.app.dead_letters.list(limit=len(inputs))
    return [letter.dlq_id for letter in reversed(page.items)]


def cause(page: Page, text: str) -> Locator:
    """Return the row of a cause."""
    return page.locator("tr[data-row]", has_text=text)


async def pictures(page: Page, name: str) -> None:
    """Keep a picture at both widths."""
    await picture(page, name)
    await page.set_viewport_size({"width": 360, "height": 800})
    await picture(page, name)
    await page.set_viewport_size({"width": 1280, "height": 900})


async def test_cause_is_reprocessed_after_a_canary_that_stops_the_first_try(
    dashboard: Dashboard,
) -> None:
    await bury(dashboard, "send_mail", *({"to": f"u{n}@example.org"} for n in range(3)))
    await bury(dashboard, "break_down", {"reason": "out of paper"})
    page = await dashboard.open("/dead-letters")
    await expect(page.get_by_text("4 wait for review, 2 causes")).to_be_visible()
    await expect(page.get_by_role("link", name="Dead letters 4")).to_be_visible()
    mail = cause(page, "send_mail")
    await expect(mail.get_by_role("img")).to_have_attribute(
        "aria-label", "Dead letters per hour: at most 3"
    )
    await pictures(page, "dead-letters")

    await mail.get_by_role("button", name="Reprocess…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("3 dead letters become new jobs")).to_be_visible()
    await expect(dialog.get_by_text("1 job first")).to_contain_text("Then 2 jobs at 10 a second")
    await dialog.get_by_label("Jobs per second").fill("0")
    await expect(dialog.get_by_role("alert")).to_contain_text("above 0")
    await dialog.get_by_label("Jobs per second").fill("100")
    await expect(dialog.get_by_text("forge dlq reprocess")).to_contain_text("--rate 100 --canary 1")
    await picture(page, "dead-letters-reprocess")
    await dialog.get_by_role("button", name="Reprocess").click()

    requests = page.get_by_role("region", name="Requests")
    await expect(requests.get_by_text("Stopped: a canary failed again.")).to_be_visible()
    await pictures(page, "dead-letters-stopped")
    mail_server.is_down = False
    await mail.get_by_role("link").click()
    await page.get_by_role("button", name="Reprocess 3 dead letters…").click()
    await dialog.get_by_label("Reason").fill("the mail server is back")
    await dialog.get_by_role("button", name="Reprocess").click()

    done = requests.get_by_text("3 dead letters reprocessed, 3 succeeded.")
    await expect(done).to_be_visible(timeout=30_000)
    await expect(page.get_by_text("No dead letters of this cause wait for review.")).to_be_visible()
    assert len(mail_server.sent) == 3
    events = await dashboard.audit()
    assert ("job_dlq_bulk_reprocess_finished", "ann", "the mail server is back") in events
    await page.get_by_role("link", name="reprocessed").click()
    await expect(page.locator("tr[data-row]")).to_have_count(4)
    await pictures(page, "cause")


async def test_one_is_reprocessed_with_an_edited_payload(dashboard: Dashboard) -> None:
    (dlq_id,) = await bury(dashboard, "send_mail", {"to": HOSTILE, "api_key": KEY})
    mail_server.is_down = False
    page = await dashboard.open("/dead-letters")
    await expect(cause(page, "onerror=alert(1)")).to_have_count(1)
    await dashboard.go(page, f"/dead-letters/{dlq_id}")
    await expect(page.get_by_text("failed for good")).to_be_visible()
    await page.get_by_text("traceback", exact=True).click()
    await expect(page.get_by_text("mail_server.send(input)")).to_be_visible()
    await expect(page.locator("main").get_by_text(KEY)).to_have_count(0)
    await pictures(page, "letter")

    await page.get_by_role("button", name="Reprocess…").click()
    dialog = page.get_by_role("dialog")
    editor = dialog.get_by_label("Payload, as JSON")
    submit = dialog.get_by_role("button", name="Reprocess")
    payload = json.loads(await editor.input_value())
    await editor.fill("{")
    await expect(dialog.get_by_text("Not JSON")).to_be_visible()
    await expect(submit).to_be_disabled()
    await editor.fill(json.dumps(payload | {"to": 7}))
    await expect(dialog.locator(".error-text", has_text="$.to")).to_be_visible()
    await picture(page, "letter-invalid")
    await editor.fill(json.dumps(payload | {"to": "bob@example.org"}, indent=2))
    await expect(dialog.get_by_text("Valid.")).to_be_visible()
    await expect(dialog.get_by_text('"to": "bob@example.org"')).to_have_count(1)
    await expect(dialog.get_by_text("forge dlq reprocess")).to_contain_text(
        """--patch '{"to":"bob@example.org"}'"""
    )
    await pictures(page, "letter-edit")
    await dialog.get_by_label("Reason").fill("a wrong address")
    await submit.click()

    await expect(page.get_by_text("reprocessed as a new job by ann")).to_be_visible()
    await expect(page.get_by_role("heading", name="Edited payload")).to_be_visible()
    await expect(page.get_by_role("button", name="Reprocess…")).to_have_count(0)
    await page.locator(".toast").get_by_role("link").click()
    await expect(page.locator("main [data-status=completed]").first).to_be_visible()
    assert [(mail.to, mail.api_key) for mail in mail_server.sent] == [("bob@example.org", KEY)]
    dashboard.provoke("422")


async def test_one_and_a_whole_cause_are_discarded_with_a_reason(dashboard: Dashboard) -> None:
    ids = await bury(dashboard, "break_down", *({"reason": "out of paper"} for _ in range(3)))
    page = await dashboard.open(f"/dead-letters/{ids[2]}")
    dialog = page.get_by_role("dialog")

    await page.get_by_role("button", name="Discard…").click()
    await expect(dialog.get_by_role("button", name="Discard")).to_be_disabled()
    await dialog.get_by_label("Reason").fill(HOSTILE)
    await dialog.get_by_role("button", name="Discard").click()
    await expect(page.get_by_text("discarded by ann")).to_have_count(2)
    await expect(page.get_by_text("onerror=alert(1)").first).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator("main code", has_text=f"{ids[1]}").first).to_be_visible()
    await page.get_by_role("link", name="NonRetryable at").click()
    await expect(page.locator("tr[data-row]")).to_have_count(2)
    await page.get_by_role("button", name="Discard 2 dead letters…").click()
    await dialog.get_by_label("Reason").fill("the printer is gone")
    await picture(page, "cause-discard")
    await dialog.get_by_role("button", name="Discard 2").click()

    await expect(page.get_by_text("2 dead letters discarded.")).to_be_visible()
    await page.get_by_role("link", name="All causes").first.click()
    await expect(page.get_by_text("No dead letters wait for review.")).to_be_visible()
    events = await dashboard.audit()
    assert events.count(("job_dlq_bulk_discard_requested", "ann", "the printer is gone")) == 1


@pytest.mark.parametrize("roles", [MANAGER, ("viewer", "staff", "manager")], ids=" ".join)
async def test_buttons_are_those_that_the_caller_may_use(
    dashboard: Dashboard, roles: tuple[str, ...]
) -> None:
    (dlq_id,) = await bury(dashboard, "break_down", {"reason": "out of paper"})
    page = await dashboard.open("/dead-letters", *roles)
    allowed = set((await dashboard.me(*roles))["allowed"])

    await expect(page.locator("tr[data-row]")).to_have_count(1)
    found = await shown_routes(page)
    await page.locator("[data-open]").click()
    await expect(page.get_by_role("link", name="All causes")).to_be_visible()
    found |= await shown_routes(page)
    await dashboard.go(page, f"/dead-letters/{dlq_id}")
    await expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    found |= await shown_routes(page)

    assert found == REVIEWS & allowed
    assert bool(found) == ("viewer" not in roles)
    staff = await dashboard.open("/dead-letters", "staff")
    await expect(staff.get_by_text("do not include this screen")).to_be_visible()
