"""`forge doctor` finds deliberate misconfigurations and recommends a fix."""

from typing import Any

import psycopg

from forge.store import doctor
from forge.store.connection.database import Database
from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import until, wait_until

__all__ = ["project_fixture"]


def test_healthy_database_with_a_worker_has_no_problem(project: Project) -> None:
    with project.worker("--capability", "gpu"):
        ended = project.forge("doctor")
        checked = project.json("doctor")

    assert ended.returncode == 0, ended.stdout
    assert "problem" not in ended.stdout
    assert checked["ok"]
    assert severities(checked, "work") == ["ok"]
    assert severities(checked, "workers") == ["ok"]
    assert {"database", "version", "clock", "migrations", "grants", "tables", "snapshots"} <= {
        finding["code"] for finding in checked["findings"]
    }


def test_unavailable_database_is_a_problem(project: Project) -> None:
    project.env["FORGE_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/nothing"

    ended = project.forge("doctor")

    assert ended.returncode == 1
    assert "does not answer" in ended.stdout
    assert "FORGE_DATABASE_URL" in ended.stdout


def test_a_missing_migration_is_found(project: Project) -> None:
    project.rows("delete from forge_migrations where version = 2")

    ended = project.forge("doctor")

    assert ended.returncode == 1
    assert "missing_migrations: migrations are missing: 0002_triggers" in ended.stdout
    assert "-> run `forge migrate`" in ended.stdout


def test_jobs_beyond_their_retention_are_found(project: Project) -> None:
    job_id = "00000000-0000-7000-8000-000000000001"
    project.rows(f"insert into forge_jobs (id, job_type) values ('{job_id}', 'greet')")
    for status in ("claimed", "running", "completed"):
        project.rows(
            f"update forge_jobs set status = '{status}', worker_id = id, "
            "lease = lease + (status = 'pending')::int, completed_at = now() - interval '8 days'"
        )
    overdue = project.json("doctor")
    project.rows("update forge_jobs set completed_at = now() - interval '7 days 1 minute'")
    barely = project.json("doctor")

    assert severities(overdue, "overdue_retention") == ["warning"]
    assert severities(barely, "retention") == ["ok"]


def test_unserved_work_is_found_and_explained(project: Project) -> None:
    with project.worker("--queue", "default"):
        project.dispatch("render")
        project.dispatch("greet", {"name": "Ada"}, "--queue", "mail")
        project.rows("insert into forge_jobs (job_type) values ('of_yesterday')")
        project.dispatch("render", None, "--delay", "1h", "--queue", "later")

        ended = project.forge("doctor")

    assert ended.returncode == 1
    assert "but no live worker has capability gpu" in ended.stdout
    assert "start a worker with --capability gpu" in ended.stdout
    assert "start a worker with --queue mail" in ended.stdout
    assert "jobs of type of_yesterday wait in queue default, but no live" in ended.stdout
    assert "later" not in ended.stdout


def test_types_without_a_worker_and_dead_workers_with_jobs_are_found(project: Project) -> None:
    project.env["FORGE_WORKER_HEARTBEAT_INTERVAL"] = "100ms"
    project.env["FORGE_WORKER_DEAD_AFTER"] = "1s"
    with project.worker() as worker:
        project.wait_for_status(project.dispatch("hang"), "running")
        worker.sigkill()

        wait_until(lambda: project.forge("doctor").returncode == 1, 20, "the dead is found")
        ended = project.forge("doctor")

    assert "and owns 1 jobs" in ended.stdout
    assert "no_worker: no worker is alive" in ended.stdout
    assert "no live worker runs environment, fail" in ended.stdout


def test_misconfigured_tables_are_found(project: Project) -> None:
    project.rows("alter table forge_attempts set unlogged")
    project.rows("alter table forge_jobs disable trigger forge_jobs_lifecycle")
    project.rows("alter table forge_jobs set (autovacuum_enabled = false)")

    ended = project.forge("doctor")

    assert ended.returncode == 1
    assert "-> alter table forge_attempts set logged" in ended.stdout
    assert "-> alter table forge_jobs enable trigger forge_jobs_lifecycle" in ended.stdout
    assert "-> alter table forge_jobs reset (autovacuum_enabled)" in ended.stdout


async def test_forgotten_transaction_is_found(database: Database) -> None:
    with psycopg.connect(database.url, application_name="forgetful") as session:
        session.execute("select txid_current()")

        async def seen() -> list[Any]:
            found = await database.run(doctor.old_snapshots(0))
            return [row for row in found if row["name"] == "forgetful"]

        (row,) = await until(seen, 10, "it shows")

        assert (row["kind"], row["state"]) == ("session", "idle in transaction")
        assert int(row["id"]) == session.info.backend_pid


def test_doctor_reports_the_grants_of_the_role(project: Project) -> None:
    assert project.forge("migrate", "--roles").returncode == 0
    project.rows("drop role if exists forge_doctor_test")
    project.rows("create role forge_doctor_test login in role forge_api")
    project.env["FORGE_DATABASE_URL"] = project.url.replace("//forge@", "//forge_doctor_test@")

    ended = project.forge("doctor")

    assert "as forge_doctor_test" in ended.stdout
    assert "can dispatch and read jobs, like forge_api; it cannot run them" in ended.stdout
    project.rows("drop role forge_doctor_test")


def severities(checked: dict[str, Any], code: str) -> list[str]:
    return [found["severity"] for found in checked["findings"] if found["code"] == code]
