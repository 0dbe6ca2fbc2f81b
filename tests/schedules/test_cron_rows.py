"""The rows of cron schedules exist before any worker has started."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from forge import Config, Forge, ScheduleContext
from tests.cli.command import APPS, Project
from tests.faults.kit.process import wait_until

CRON_ROWS = "select type, cron, tz, enabled, next_run_at > now() from forge_schedules"
NIGHTLY = ("nightly", "0 3 * * *", "Europe/Paris", True, True)
SETTINGS = """
[auth]
secret = "a secret of thirty-two characters or more"
"""


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    """An app with a cron schedule, in a folder of its own, on a migrated database."""
    (tmp_path / "clockwork.py").write_text((APPS / "clockwork.py").read_text())
    return Project(database_url, tmp_path)


@pytest.fixture
def empty(empty_url: str, project: Project) -> Project:
    """The same app on a database without tables."""
    return Project(empty_url, project.folder)


def clockwork(url: str) -> Forge:
    app = Forge(Config(), database_url=url)

    @app.cron("0 3 * * *", tz="Europe/Paris")
    async def nightly(ctx: ScheduleContext) -> None: ...

    return app


def test_migrate_with_an_app_makes_them(empty: Project) -> None:
    for _ in range(2):
        ended = empty.forge("migrate", "--app", "clockwork:app")
        assert ended.returncode == 0, ended.stderr

    assert empty.rows(CRON_ROWS) == [NIGHTLY]


def test_migrate_does_not_enable_one_that_was_disabled(project: Project) -> None:
    project.forge("migrate", "--app", "clockwork:app")
    project.forge("schedules", "disable", "nightly")

    project.forge("migrate", "--app", "clockwork:app")

    assert project.rows("select enabled from forge_schedules") == [(False,)]


def test_a_server_that_starts_makes_them(project: Project) -> None:
    made = project.forge("token", "create", "--name", "ann", "--role", "user").stdout
    block = made[made.index("[[auth.tokens]]") :]
    (project.folder / "forge.toml").write_text(SETTINGS + block)

    with project.start("server", "clockwork:app", "--port", "0") as server:
        wait_until(
            lambda: re.search(r"http://127\.0\.0\.1:\d+", server.output()) or not server.is_alive,
            30,
            "the server listens",
        )
        wait_until(lambda: project.rows(CRON_ROWS) == [NIGHTLY], 10, "the row is there")


async def test_an_app_that_is_opened_makes_them(database_url: str, psql: Any) -> None:
    async with clockwork(database_url):
        assert [tuple(row) for row in await psql.fetch(CRON_ROWS)] == [NIGHTLY]


async def test_an_app_without_an_event_loop_makes_them(database_url: str, psql: Any) -> None:
    app = clockwork(database_url)

    await asyncio.to_thread(app.sync.schedules.list)
    await asyncio.to_thread(app.sync.close)

    assert [tuple(row) for row in await psql.fetch(CRON_ROWS)] == [NIGHTLY]


async def test_an_app_opens_on_a_database_without_tables_and_migrates_it(empty_url: str) -> None:
    async with clockwork(empty_url) as app:
        await app.migrate()

        (row,) = await app.schedules.list()
    assert (row.type, row.cron, row.enabled) == ("nightly", "0 3 * * *", True)
