"""Every screen with something to show: what holds everywhere is tested on each."""

from tests.browser.dashboard.conftest import Dashboard

# The addresses of `screens.ts`, and what `fill` calls those that show something of them.
SCREENS = {"/jobs": "jobs", "/jobs/:id": "job"}


async def fill(dashboard: Dashboard) -> dict[str, str]:
    """Make something for each screen to show; return the addresses by the names of pictures."""
    failed = await dashboard.app.dispatch("break_down", {"reason": "out of paper"})
    waiting = await dashboard.app.dispatch("greet", {"text": "hello"}, delay="1h")
    story = await dashboard.app.dispatch("import_orders", {})
    await story.result()
    async for _ in failed.updates():
        pass
    return {
        "jobs": "/jobs",
        "jobs-empty": "/jobs?q=nothing&tag=none",
        "job-failed": f"/jobs/{failed.id}",
        "job-waiting": f"/jobs/{waiting.id}",
        "job": f"/jobs/{story.id}",
        "not-found": "/no-such-screen",
    }
