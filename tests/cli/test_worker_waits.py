"""`forge worker` while its database is not ready: it waits for an outage and exits at a refusal."""

import asyncio
import re
from collections.abc import Callable, Iterator

import pytest

from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.cli.command import Project
from tests.faults.kit.process import wait_until
from tests.faults.kit.server import running_server

WAITING = "waiting for the database; work begins when it answers"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A migrated PostgreSQL server that requires a password on its port."""
    with running_server(fsync="off") as server:
        asyncio.run(_migrate(server))
        yield server


async def _migrate(server: Cluster) -> None:
    database = Database(server.url())
    await migrate(database)
    await database.close()


def test_worker_waits_for_an_unavailable_database(cluster: Cluster) -> None:
    project = Project(cluster.url())
    cluster.stop("fast")
    with project.start("worker", "shop:app") as worker:
        wait_until(lambda: WAITING in worker.output(), 30, "it says that it waits")
        assert "FORGE_DATABASE_URL" in worker.output()
        assert worker.is_alive

        cluster.start()

        wait_until(lambda: " runs " in worker.output(), 30, "it has begun")
        project.wait_for_status(project.dispatch("greet", {"name": "Ada"}), "completed")
        worker.sigterm()
        assert worker.wait(20) == 0


def test_waiting_worker_stops_at_a_signal(cluster: Cluster) -> None:
    project = Project(cluster.url())
    cluster.stop("fast")
    try:
        with project.start("worker", "shop:app") as worker:
            wait_until(lambda: WAITING in worker.output(), 30, "it says that it waits")

            worker.sigterm()

            assert worker.wait(20) == 0
    finally:
        cluster.start()


def _with_a_wrong_password(server: Cluster) -> str:
    return re.sub(r"://([^:]+):[^@]+@", r"://\1:wrong@", server.url(tcp=True))


@pytest.mark.parametrize(
    ("url_of", "message"),
    [
        (_with_a_wrong_password, "password authentication failed"),
        (lambda server: server.url("not_there"), 'database "not_there" does not exist'),
        (lambda server: server.url(user="nobody"), 'role "nobody" does not exist'),
    ],
    ids=["a wrong password", "no such database", "no such role"],
)
def test_worker_with_a_refused_login_exits_at_once(
    cluster: Cluster, url_of: Callable[[Cluster], str], message: str
) -> None:
    ended = Project(url_of(cluster)).forge("worker", "shop:app", timeout=30)

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert message in ended.stderr
    assert ended.stderr.endswith("or correct FORGE_DATABASE_URL or [database] url\n")


def test_workers_with_a_refused_login_are_not_restarted(cluster: Cluster) -> None:
    url = cluster.url("not_there")

    ended = Project(url).forge("worker", "shop:app", "--processes", "2", timeout=60)

    assert ended.returncode == 1
    assert ended.stderr.count(' rejected the login: database "not_th') == 2
    assert "restarting in" not in ended.stderr


def test_worker_without_tables_recommends_migrate(cluster: Cluster) -> None:
    ended = Project(cluster.url("template1")).forge("worker", "shop:app", timeout=30)

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.endswith("run `forge migrate` on this database\n")
