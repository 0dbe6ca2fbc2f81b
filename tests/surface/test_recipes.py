"""The cookbook and the migration guides run as printed: one database, one worker, one process."""

from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

from tests.cli.command import Project
from tests.surface.mail_server import mail_server
from tests.surface.page_code import run_pages_together, write_files
from tests.surface.pages import CHECKOUT, TOGETHER, blocks, name_of

# The table of procrastinate 3, without its indexes and triggers: two jobs wait, one runs, and one
# is of another task.
PROCRASTINATE = """
create type procrastinate_job_status as enum (
    'todo', 'doing', 'succeeded', 'failed', 'cancelled', 'aborting', 'aborted'
);
create table procrastinate_jobs (
    id bigserial primary key, queue_name varchar(128) not null, task_name varchar(128) not null,
    priority integer not null default 0, lock text, queueing_lock text,
    args jsonb not null default '{}', status procrastinate_job_status not null default 'todo',
    scheduled_at timestamptz, attempts integer not null default 0,
    abort_requested boolean not null default false, worker_id bigint
);
insert into procrastinate_jobs (queue_name, task_name, args, status, scheduled_at) values
    ('mail', 'send_invoice', '{"order_id": 1, "email": "due@example.com"}', 'todo', null),
    ('mail', 'send_invoice', '{"order_id": 2, "email": "later@example.com"}', 'todo', '2099-1-1Z'),
    ('mail', 'send_invoice', '{"order_id": 3, "email": "runs@example.com"}', 'doing', null),
    ('mail', 'send_receipt', '{"order_id": 4}', 'todo', null);
"""


def test_the_recipes_run(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server() as (address, mails):
        monkeypatch.setenv("MAIL_SERVER", address)
        run_pages_together(TOGETHER, database_url, tmp_path)

    (mail,) = mails
    assert (mail["To"], mail["Subject"]) == ("ada@example.com", "Welcome")
    assert mail["Message-ID"].endswith("@example.com>")
    assert mail.get_content().strip() == "Hello Ada!"


async def test_waiting_jobs_of_procrastinate_move_once(database_url: str, tmp_path: Path) -> None:
    page = CHECKOUT / "docs" / "howto" / "migrate-from-procrastinate.md"
    (statement,) = [block.code for block in blocks(page, "sql")]
    write_files(page, tmp_path)
    migrated = Project(database_url, tmp_path).forge("migrate", "--app", "invoices:app")
    assert migrated.returncode == 0, migrated.stderr
    conn = await asyncpg.connect(database_url)
    await conn.execute(PROCRASTINATE)

    await conn.execute(statement)
    await conn.execute(statement)

    moved = await conn.fetch("select input ->> 'email' as email, scheduled_at from forge_jobs")
    assert sorted(row["email"] for row in moved) == ["due@example.com", "later@example.com"]
    assert max(row["scheduled_at"] for row in moved) == datetime(2099, 1, 1, tzinfo=UTC)
    left = await conn.fetch("select status::text from procrastinate_jobs order by id")
    assert [row["status"] for row in left] == ["cancelled", "cancelled", "doing", "todo"]
    await conn.close()


def test_each_recipe_has_code_that_shows_what_it_prints() -> None:
    recipes = [page for page in TOGETHER if page.name != "README.md"]

    silent = [
        name_of(page)
        for page in recipes
        if not any(block.runs and block.expected_output for block in blocks(page, "python"))
    ]
    assert silent == []
    assert len(recipes) >= 11
