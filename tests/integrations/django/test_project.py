"""A Django project with Forge: its own tests, its migrations and its commands."""

import json
import sys

import psycopg
import pytest

from tests.faults.kit.process import spawn, wait_until
from tests.integrations.django.conftest import PROJECT, Manage, environment


@pytest.mark.timeout(300)
def test_the_tests_of_the_project_pass(manage: Manage) -> None:
    ended = manage("test", "--verbosity", "2", "--no-input", "orders")

    assert "\nOK" in ended.stderr, ended.stderr
    assert "skipped" not in ended.stderr


def test_migrate_and_forge_migrate_apply_the_same_migrations(
    manage: Manage, empty_url: str
) -> None:
    printed = manage("sqlmigrate", "forge", "0001").stdout
    manage("migrate", "forge", "0003")
    with psycopg.connect(empty_url) as connection:
        few = connection.execute("select count(*) from forge_migrations").fetchone()
    manage("forge", "migrate")
    manage("migrate")
    again = manage("forge", "migrate").stdout
    unapplied = manage("migrate", "--check")

    assert "create table forge_jobs" in printed
    assert few == (3,)
    assert "nothing to do" in again
    assert unapplied.returncode == 0


def test_tables_exist_where_migrations_are_disabled(manage: Manage, empty_url: str) -> None:
    manage("migrate", "--run-syncdb", SHOP_WITHOUT_MIGRATIONS="1")

    assert "nothing to do" in manage("forge", "migrate").stdout


def test_commands_act_on_the_jobs_and_the_database_of_the_project(
    manage: Manage, empty_url: str
) -> None:
    manage("migrate")
    with psycopg.connect(empty_url) as connection:
        connection.execute("insert into orders_order (id, customer) values (1, 'ann')")
    # The wrong database: DATABASES decides.
    wrong = {"FORGE_DATABASE_URL": "postgresql://nowhere.invalid/x"}

    job_id = manage("forge", "dispatch", "confirm", '{"order": 1}', **wrong).stdout.strip()
    listed = json.loads(manage("forge", "jobs", "list", "--json", **wrong).stdout)
    command = [sys.executable, "manage.py", "forge", "worker"]
    with spawn(command, environment(empty_url) | wrong, cwd=PROJECT) as worker:
        wait_until(lambda: is_confirmed(empty_url) or not worker.is_alive, 60, "the job has run")
        worker.sigterm()
        assert (worker.wait(60), is_confirmed(empty_url)) == (0, True)
    unknown = manage("forge", "dispatch", "confrim", "{}", check=False)
    shown = manage("forge", "--help")

    assert [job["id"] for job in listed["items"]] == [job_id]
    assert unknown.returncode == 1
    assert "did you mean 'confirm'?" in unknown.stderr
    assert "manage.py forge [OPTIONS] COMMAND" in shown.stdout


def is_confirmed(url: str) -> bool:
    """Whether the handler has changed the order, and its job completed."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "select 1 from orders_order, forge_jobs where confirmed_at is not null"
            " and status = 'completed' and output::text like '%confirmed for ann%'"
        ).fetchone()
    return found is not None
