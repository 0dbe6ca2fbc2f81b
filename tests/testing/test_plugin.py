"""The pytest plugin, in projects that pytest runs in processes of its own."""

import os
from typing import Any

import psycopg
import pytest

from forge.store.embedded import Cluster

pytest_plugins = ["pytester"]

SHOP = """
    from forge import Forge, JobContext, Retry

    app = Forge()

    @app.job(retry=Retry(max_attempts=2))
    async def export_users(ctx: JobContext, input: dict) -> dict:
        if input.get("fails"):
            raise LookupError("no such user")
        ctx.progress(50, "half")
        await mail.dispatch({"to": "ann"}, delay="1h")
        return {"file": f"users.{input['format']}"}

    @app.job
    def mail(ctx: JobContext, input: dict) -> None: ...
"""
TESTS = """
    import pytest
    from forge.testing import assert_dispatched, assert_not_dispatched, run_all, within
    from shop import export_users, mail

    {mark}
    async def test_a_job_runs(forge_app):
        handle = await export_users.dispatch({{"format": "csv"}})
        summary = await run_all(forge_app)
        assert summary.completed == 1
        assert (await handle.result()) == {{"file": "users.csv"}}
        soon = within("1h")
        await assert_dispatched(forge_app, mail, {{"to": "ann"}}, scheduled_at=soon)

    {mark}
    async def test_each_test_has_a_database_of_its_own(forge_app):
        await assert_not_dispatched(forge_app, mail)

    {mark}
    async def test_a_test_may_create_tables(forge_app, forge_database_url):
        import asyncpg
        connection = await asyncpg.connect(forge_database_url)
        await connection.execute("create table orders (id integer primary key)")
        await connection.close()

    test_the_next_ones_find_none = test_another_one_too = test_a_test_may_create_tables

    {mark}
    async def test_a_real_worker_runs_in_the_loop(forge_app, forge_worker):
        handle = await export_users.dispatch({{"format": "pdf"}})
        assert (await handle.result(timeout="20s")) == {{"file": "users.pdf"}}

    def test_a_plain_test_uses_app_sync(forge_app):
        from forge.testing import sync
        handle = forge_app.sync.dispatch(export_users, {{"format": "csv"}})
        assert sync.run_all(forge_app).completed == 1
        assert sync.run_one(handle) == {{"file": "users.csv"}}
        sync.assert_dispatched(forge_app, mail, {{"to": "ann"}})
        sync.advance(forge_app, "2h")
        assert sync.run_all(forge_app).count("completed", "mail") == 1
"""
ANYIO = """
    @pytest.fixture
    def anyio_backend():
        return "asyncio"
"""


@pytest.fixture
def project(
    pytester: pytest.Pytester, server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """A project whose tests run on the server of these tests."""
    monkeypatch.setenv("FORGE_TEST_DATABASE_URL", server.url("postgres"))
    monkeypatch.delenv("FORGE_DATABASE_URL", raising=False)
    pytester.makepyfile(shop=SHOP)
    pytester.makeini("[pytest]\nforge_app = shop:app\nasyncio_mode = auto\n")
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    # By its module: how the package is installed here decides whether it is registered by name.
    plugin = ("-p", "no:forge", "-p", "forge.testing.plugin", "-p", "no:cacheprovider")
    return project.runpytest_subprocess(*plugin, *args, timeout=100)


def test_tests_run_with_pytest_asyncio(project: pytest.Pytester) -> None:
    project.makepyfile(test_shop=TESTS.format(mark=""))

    run(project, "-p", "no:xdist").assert_outcomes(passed=7)


def test_tests_run_with_anyio(project: pytest.Pytester) -> None:
    project.makepyfile(test_shop=TESTS.format(mark="@pytest.mark.anyio") + ANYIO)
    project.makeini("[pytest]\nforge_app = shop:app\n")

    run(project, "-p", "no:asyncio", "-p", "no:xdist").assert_outcomes(passed=7)


def test_tests_run_in_several_processes(project: pytest.Pytester) -> None:
    project.makepyfile(test_shop=TESTS.format(mark=""), test_more=TESTS.format(mark=""))

    run(project, "-n", "2").assert_outcomes(passed=14)
    assert databases_of_runs(os.environ["FORGE_TEST_DATABASE_URL"]) == []


def test_a_forgotten_await_fails_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_shop="""
        from forge.testing import assert_dispatched

        async def test_forgets(forge_app):
            assert_dispatched(forge_app, "mail")
        """
    )

    result = run(project, "-p", "no:xdist")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert_dispatched was not awaited, so it checked nothing*"])


def databases_of_runs(url: str) -> list[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "select datname from pg_database where datname like 'forge\\_test\\_run\\_%'"
        )
        return [name for (name,) in found]


def test_a_test_never_opens_the_database_of_development(
    project: pytest.Pytester, server: Cluster
) -> None:
    project.makepyfile(
        explicit=f"from forge import Forge\nexplicit = Forge(database_url={server.url()!r})",
        test_shop="""
        import subprocess, sys
        from pathlib import Path
        import pytest
        from forge.testing import NotATestDatabase
        from explicit import explicit
        from shop import app, export_users

        async def test_without_the_fixture():
            with pytest.raises(NotATestDatabase, match="forge_app"):
                await export_users.dispatch({})

        def test_of_another_app():
            with pytest.raises(NotATestDatabase, match="the database .forge. at"):
                explicit.sync.list_jobs()

        def test_in_a_process_that_the_test_starts(forge_app):
            run = lambda code: subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True
            )
            ran = run("from shop import app; print(app.sync.list_jobs())")
            assert ran.returncode == 0, ran.stderr
            ran = run("from explicit import explicit; explicit.sync.list_jobs()")
            assert "NotATestDatabase" in ran.stderr

        def test_nothing_was_started_in_the_folder():
            assert not Path(".forge").exists()
        """,
    )

    run(project, "-p", "no:xdist").assert_outcomes(passed=4)


def test_without_a_server_the_embedded_one_of_tests_is_used(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORGE_TEST_DATABASE_URL")
    project.makepyfile(
        test_shop="""
        from pathlib import Path
        from forge.testing import run_all
        from shop import export_users

        async def test_a_job_runs(forge_app):
            await export_users.dispatch({"format": "csv"})
            assert (await run_all(forge_app)).completed == 1
            assert Path(".forge/testing/postgres").exists()
            assert not Path(".forge/postgres").exists()
        """
    )

    run(project, "-p", "no:xdist").assert_outcomes(passed=1)


def test_a_login_that_creates_no_databases_has_its_own_one_emptied(
    project: pytest.Pytester,
    server: Cluster,
    maintenance: "psycopg.Connection[Any]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    login, name = f"plain_{os.getpid()}", f"plain_test_{os.getpid()}"
    maintenance.execute(f"create role {login} login".encode())
    maintenance.execute(f"create database {name} owner {login}".encode())
    monkeypatch.setenv("FORGE_TEST_DATABASE_URL", server.url(name, login))
    # Only Forge's tables are emptied.
    tests = TESTS.format(mark="").replace("create table", "create temporary table")
    project.makepyfile(test_shop=tests, test_more=tests)

    run(project, "-n", "2").assert_outcomes(passed=14)

    maintenance.execute(f"drop database {name} with (force)".encode())
    maintenance.execute(f"drop role {login}".encode())


def test_an_app_that_is_not_named_is_asked_for(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nasyncio_mode = auto\n")
    project.makepyfile(test_shop="def test_nothing(forge_app): ...")

    result = run(project, "-p", "no:xdist")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*Or set forge_app = "module:app"*'])
