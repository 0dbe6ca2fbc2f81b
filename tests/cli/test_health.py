"""What a worker and a server report to systemd and to the probes of a container platform."""

import socket
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until
from tests.faults.kit.proxy import Mode, Proxy
from tests.telemetry.test_processes import address

__all__ = ["project_fixture"]


class Manager:
    """The socket of a service manager."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.received: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        self._socket.setblocking(False)

    def count(self, state: str) -> int:
        """Return how often this state was received."""
        try:
            while True:
                self.received.append(self._socket.recv(4096).decode())
        except BlockingIOError:
            return self.received.count(state)

    def wait_for(self, state: str, times: int = 1) -> None:
        wait_until(lambda: self.count(state) >= times, 30, f"{times} × {state}")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(project: Project) -> Iterator[Manager]:
    # Paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="forge-") as folder:
        found = Manager(f"{folder}/notify")
        project.env |= {
            "NOTIFY_SOCKET": found.path,
            "WATCHDOG_USEC": "3000000",
            "FORGE_WORKER_HEARTBEAT_INTERVAL": "200ms",
        }
        yield found
        found.close()


def test_a_worker_reports_its_start_its_heartbeats_and_its_end(
    project: Project, manager: Manager
) -> None:
    with project.worker() as worker:
        manager.wait_for("READY=1")
        manager.wait_for("WATCHDOG=1", 3)
        assert manager.count("STOPPING=1") == 0

        worker.sigterm()
        assert worker.wait(20) == 0

    assert manager.count("STOPPING=1") == 1
    assert manager.received[0] in ("READY=1", "WATCHDOG=1")


def test_a_stopped_worker_reports_nothing(project: Project, manager: Manager) -> None:
    with project.worker() as worker:
        manager.wait_for("WATCHDOG=1")
        worker.sigstop()
        before = manager.count("WATCHDOG=1")
        # Longer than the interval between heartbeats.
        assert project.json("workers")
        assert manager.count("WATCHDOG=1") == before
        worker.sigcont()
        manager.wait_for("WATCHDOG=1", before + 1)


def test_an_outage_of_the_database_does_not_end_the_reports(
    project: Project, manager: Manager
) -> None:
    with Proxy.in_thread(project.url) as proxy:
        project.env["FORGE_DATABASE_URL"] = proxy.url()
        with project.worker() as worker:
            manager.wait_for("READY=1")
            proxy.mode = Mode.DROP
            wait_until(lambda: "heartbeat was lost" in worker.output(), 30, "heartbeats are lost")
            manager.wait_for("WATCHDOG=1", manager.count("WATCHDOG=1") + 2)
            proxy.mode = Mode.PASS


@pytest.mark.parametrize("arguments", [["--processes", "2"], []])
def test_handlers_do_not_inherit_the_socket(
    project: Project, manager: Manager, arguments: list[str]
) -> None:
    project.env["FORGE_WORKER_METRICS_PORT"] = "0"
    with project.worker(*arguments) as worker:
        manager.wait_for("READY=1")
        job = project.dispatch("environment")
        project.wait_for_status(job, "completed")
        manager.wait_for("WATCHDOG=1")
        worker.sigterm()
        assert worker.wait(20) == 0

    (names,) = project.row("select output from forge_jobs where id = %s", job)
    assert "FORGE_DATABASE_URL" in names
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & set(names)
    assert manager.count("READY=1") == 1
    assert manager.count("STOPPING=1") == 1


def test_a_server_reports_its_start_and_that_its_loop_runs(
    project: Project, manager: Manager
) -> None:
    jwt = {"ALGORITHM": "HS256", "SECRET": "y" * 32, "ISSUER": "us", "AUDIENCE": "forge"}
    project.env |= {f"FORGE_AUTH_JWT_{name}": value for name, value in jwt.items()}
    project.env["FORGE_AUTH_SECRET"] = "x" * 32
    with project.start("server", "shop:app", "--port", "0") as server:
        manager.wait_for("READY=1")
        manager.wait_for("WATCHDOG=1", 2)
        server.sigterm()
        assert server.wait(20) == 0, server.output()

    assert manager.count("STOPPING=1") == 1


def test_a_worker_answers_probes(project: Project, tmp_path: Path) -> None:
    project.env |= {"FORGE_WORKER_METRICS_PORT": "0", "FORGE_WORKER_HEARTBEAT_INTERVAL": "200ms"}
    project.env["FORGE_WORKER_DEAD_AFTER"] = "2s"
    gate = tmp_path / "gate"
    with Proxy.in_thread(project.url) as proxy:
        project.env["FORGE_DATABASE_URL"] = proxy.url()
        with project.worker() as worker:
            base = address(worker).removesuffix("/metrics")
            wait_until(lambda: _status(f"{base}/readyz") == 200, 20, "it is ready")
            assert _status(f"{base}/livez") == 200
            assert _status(f"{base}/other") == 404

            proxy.mode = Mode.RESET
            wait_until(lambda: _status(f"{base}/readyz") == 503, 30, "it is not ready")
            assert _status(f"{base}/livez") == 200
            proxy.mode = Mode.PASS
            wait_until(lambda: _status(f"{base}/readyz") == 200, 30, "it is ready again")

            job = project.dispatch("wait_at", {"gate": str(gate)})
            project.wait_for_status(job, "running")
            worker.sigterm()
            wait_until(lambda: _status(f"{base}/readyz") == 503, 20, "it drains")
            assert _status(f"{base}/livez") == 200
            gate.touch()
            assert worker.wait(20) == 0


def test_workers_together_are_ready_when_all_run(project: Project) -> None:
    project.env["FORGE_WORKER_METRICS_PORT"] = "0"
    with project.worker("--processes", "2") as workers:
        base = address(workers).removesuffix("/metrics")
        wait_until(lambda: _status(f"{base}/readyz") == 200, 20, "both run")

        for child in psutil.Process(workers.pid).children():
            child.kill()
        wait_until(lambda: _status(f"{base}/readyz") == 503, 20, "a worker is missing")
        assert _status(f"{base}/livez") == 200
        wait_until(lambda: _status(f"{base}/readyz") == 200, 30, "both run again")


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
