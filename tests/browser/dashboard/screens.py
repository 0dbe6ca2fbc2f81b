"""Every screen with something to show: what holds everywhere is tested on each."""

import re

from tests.browser.dashboard.conftest import Dashboard


async def fill(dashboard: Dashboard) -> dict[str, str]:
    """Make something for each screen to show; return the addresses by the names of pictures."""
    failed = await dashboard.app.dispatch("break_down", {"reason": "out of paper"})
    waiting = await dashboard.app.dispatch("greet", {"text": "hello"}, delay="1h")
    story = await dashboard.app.dispatch("import_orders", {})
    await story.result()
    async for _ in failed.updates():
        pass
    schedule = await dashboard.app.schedules.ensure("clean_up", cron="0 3 * * *", tz="Asia/Tokyo")
    letter = (await dashboard.app.dead_letters.list()).items[0]
    worker = (await dashboard.app.get(story.id)).worker_id
    return {
        "overview": "/overview",
        "database": "/database",
        "jobs": "/jobs",
        "jobs-empty": "/jobs?q=nothing&tag=none",
        "job-failed": f"/jobs/{failed.id}",
        "job-waiting": f"/jobs/{waiting.id}",
        "job": f"/jobs/{story.id}",
        "dead-letters": "/dead-letters",
        "dead-letters-empty": "/dead-letters?status=discarded",
        "cause": f"/dead-letters/causes/{letter.fingerprint}",
        "letter": f"/dead-letters/{letter.dlq_id}",
        "schedules": "/schedules",
        "schedules-empty": "/schedules?type=none",
        "schedule": f"/schedules/{schedule.id}",
        "types": "/types",
        "type": "/types/greet",
        "queues": "/queues",
        "queue": "/queues/default",
        "workers": "/workers",
        "worker": f"/workers/{worker}",
        "audit": "/audit",
        "not-found": "/no-such-screen",
    }


def shows(path: str, address: str) -> bool:
    """Return whether an address is one of a path such as `/jobs/:id`."""
    return bool(re.fullmatch(re.sub(r":\w+", "[^/]+", path), address.partition("?")[0]))
