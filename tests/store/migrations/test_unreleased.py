"""A database of an unreleased version is rejected, with instructions that work."""

import re
import shlex

import httpx
import psycopg
import pytest

from forge import Config, Forge, SchemaMissing
from forge.http import create_app
from forge.store.connection.database import Database
from forge.store.migrate import all_migrations, migrate
from forge.worker.worker import Worker
from tests.cli.command import Project

# The ledger of the versions before the first release.
OLD_LEDGER = (
    "jobs",
    "records",
    "dispatch_checks",
    "tenant_listing",
    "schedules",
    "row_security",
    "dead_letter_groups",
    "payload_rules",
    "outbox",
)
REFUSAL = r"unreleased version .* 0001 is jobs, not tables"
OBJECTS = """
    select count(*) from (
        select from pg_class
        where relname like 'forge\\_%' and relnamespace = 'public'::regnamespace
        union all
        select from pg_proc
        where proname like 'forge\\_%' and pronamespace = 'public'::regnamespace
    ) as objects
"""


@pytest.fixture
def old_url(database_url: str) -> str:
    """Forge's tables, with the ledger of an unreleased version."""
    with psycopg.connect(database_url, autocommit=True) as psql:
        psql.execute("delete from forge_migrations")
        for version, name in enumerate(OLD_LEDGER, 1):
            psql.execute("insert into forge_migrations values (%s, %s)", (version, name))
    return database_url


async def test_migrate_refuses_it_and_changes_nothing(old_url: str) -> None:
    with pytest.raises(SchemaMissing, match=REFUSAL):
        await migrate(Database(old_url))

    with psycopg.connect(old_url) as psql:
        found = psql.execute("select name from forge_migrations order by version").fetchall()
    assert [name for (name,) in found] == list(OLD_LEDGER)


async def test_an_older_unreleased_ledger_is_refused_too(old_url: str) -> None:
    with psycopg.connect(old_url, autocommit=True) as psql:
        psql.execute("delete from forge_migrations where version > 2")

    with pytest.raises(SchemaMissing, match=REFUSAL):
        await migrate(Database(old_url))


async def test_a_worker_does_not_start_on_it(old_url: str) -> None:
    async with Forge(Config(), database_url=old_url) as app:
        with pytest.raises(SchemaMissing, match=REFUSAL):
            await Worker(app).run()


async def test_a_server_is_not_ready_on_it(old_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with Forge(Config(), database_url=old_url) as app:
        transport = httpx.ASGITransport(create_app(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answer = await client.get("/readyz")

    assert answer.status_code == 503
    assert re.search(REFUSAL, caplog.text)


def test_doctor_reports_it_with_a_remedy(old_url: str) -> None:
    ended = Project(old_url).forge("doctor")

    assert ended.returncode == 1
    assert re.search(REFUSAL, ended.stdout)
    assert "-> create a new database" in ended.stdout


def test_the_script_that_the_refusal_names_makes_room_for_the_new_tables(old_url: str) -> None:
    project = Project(old_url)
    refused = project.forge("migrate")
    assert refused.returncode == 1
    command = re.search(r"by `psql (.+?)`", refused.stderr)
    assert command is not None, refused.stderr

    url, option, script = shlex.split(command[1])
    assert (url, option) == ("$FORGE_DATABASE_URL", "-f")
    with psycopg.connect(old_url, autocommit=True) as psql, open(script) as statements:
        psql.execute(statements.read().encode())
        assert psql.execute(OBJECTS.encode()).fetchone() == (0,)
    migrated = project.forge("migrate")

    assert migrated.returncode == 0, migrated.stderr
    assert migrated.stdout.splitlines() == [f"applied {step}" for step in all_migrations()]
