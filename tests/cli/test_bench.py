"""`forge bench` measures in a temporary database."""

from tests.cli.command import Project, project_fixture

__all__ = ["project_fixture"]


def test_bench_uses_a_temporary_database(project: Project) -> None:
    measured = project.json("bench", "--jobs", "300")

    assert measured["jobs"] == 300
    assert measured["jobs_per_second"] > 0
    assert measured["dispatches_per_second"] > 0
    assert 0 < measured["latency_p50"] <= measured["latency_p99"]
    assert measured["wal_bytes_per_job"] > 100
    assert project.rows("select datname from pg_database where datname like 'forge_bench%'") == []
    assert project.rows("select id from forge_jobs") == []


def test_bench_ignores_the_queues_setting(project: Project) -> None:
    project.env["FORGE_WORKER_QUEUES"] = "mail"

    assert project.json("bench", "--jobs", "100")["jobs_per_second"] > 0


def test_bench_without_createdb_explains_what_to_do(project: Project) -> None:
    project.rows("drop role if exists forge_bench_test")
    project.rows("create role forge_bench_test login")
    project.env["FORGE_DATABASE_URL"] = project.url.replace("//forge@", "//forge_bench_test@")

    ended = project.forge("bench")

    assert ended.returncode == 1
    assert "createdb" in ended.stderr
    project.rows("drop role forge_bench_test")
