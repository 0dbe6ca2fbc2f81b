"""`forge worker` before its database is ready: what passes is waited for, what does not is said."""

import asyncio
import re
from collections.abc import Callable, Iterator

import pytest

from forge.store.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.faults.kit.process import wait_until
from tests.faults.kit.server import running_server
from tests.flow.command import Project

WAITING = "waiting for the database; work begins when it answers"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A migrated server of these tests' own, which asks for a password on its port."""
    with running_server(fsync="off") as server:
        asyncio.run(_migrate(server))
        yield server


async def _migrate(server: Cluster) -> None:
    database = Database(server.url())
    await migrate(database)
    await database.close()


def test_a_worker_waits_for_a_database_that_is_away(cluster: Cluster) -> None:
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


def test_a_worker_that_waits_can_be_told_to_stop(cluster: Cluster) -> None:
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
    ("url_of", "told"),
    [
        (_with_a_wrong_password, "password authentication failed"),
        (lambda server: server.url("not_there"), 'database "not_there" does not exist'),
        (lambda server: server.url(user="nobody"), 'role "nobody" does not exist'),
    ],
    ids=["a wrong password", "no such database", "no such role"],
)
def test_a_worker_that_is_not_let_in_ends_at_once(
    cluster: Cluster, url_of: Callable[[Cluster], str], told: str
) -> None:
    ended = Project(url_of(cluster)).forge("worker", "shop:app", timeout=30)

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert told in ended.stderr
    assert ended.stderr.endswith("or correct FORGE_DATABASE_URL or [database] url\n")


def test_several_that_are_not_let_in_are_not_started_again(cluster: Cluster) -> None:
    url = cluster.url("not_there")

    ended = Project(url).forge("worker", "shop:app", "--processes", "2", timeout=60)

    assert ended.returncode == 1
    assert ended.stderr.count(' does not let Forge in: database "not_th') == 2
    assert "again in" not in ended.stderr


def test_a_worker_that_finds_no_tables_says_to_migrate(cluster: Cluster) -> None:
    ended = Project(cluster.url("template1")).forge("worker", "shop:app", timeout=30)

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.endswith("run `forge migrate` on this database\n")
