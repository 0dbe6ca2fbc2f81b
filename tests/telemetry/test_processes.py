"""Metrics of real workers: on their own ports, and of several processes together."""

import json
import os
import re
import signal
import socket
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import Child, wait_until
from tests.telemetry.exposed import Samples, read

__all__ = ["project_fixture"]

COUNTING = """
import forge
from prometheus_client import Counter

app = forge.Forge()
Counter("seen", "What was seen.", registry=app.metrics.worker.registry).inc()


@app.job
async def greet(ctx: forge.JobContext, input: dict) -> None: ...
"""
ON_ANY_PORT = {"FORGE_WORKER_METRICS_PORT": "0"}


@pytest.fixture(autouse=True)
def _measured(project: Project) -> None:
    project.env |= ON_ANY_PORT


def test_a_worker_serves_its_metrics_on_its_own_port(project: Project) -> None:
    with project.worker() as worker:
        dispatch(project, 1)

        samples = once_it_shows(worker, ("job_processed_total", "greet", "completed"), 1)

    assert samples["job_queue_latency_milliseconds_count", "greet"] == 1
    assert samples["db_query_duration_seconds_count", "jobs/survey"] > 0


def test_a_second_worker_uses_the_next_port_and_logs_it(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        project.env["FORGE_WORKER_METRICS_PORT"] = str(port)

        with project.worker() as worker:
            found = address(worker)

            assert f"port {port} is in use" in worker.output()
            assert f":{port}/" not in found
            read(scrape(found))


def test_off_means_that_nothing_listens(project: Project) -> None:
    project.env["FORGE_WORKER_METRICS_PORT"] = "off"

    with project.worker() as worker:
        held = psutil.Process(worker.pid).net_connections()
        said = worker.output()

    assert [connection for connection in held if connection.status == "LISTEN"] == []
    assert "metrics" not in said


def test_a_handler_that_blocks_the_loop_does_not_hide_the_metrics(
    project: Project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with project.worker(app="blocking:app") as worker:
        found = address(worker)
        project.rows("select forge_dispatch('block', %s)", json.dumps({"gate": str(gate)}))
        wait_until((tmp_path / "gate.reached").exists, 20, "the handler blocks")

        samples = read(scrape(found))

        assert samples["job_active_count", "block"] == 1
        gate.touch()


def test_several_processes_are_one_to_a_scraper(project: Project) -> None:
    with project.start("worker", "shop:app", "--processes", "2") as parent:
        wait_until(lambda: parent.output().count(" runs ") == 2, 40, "both work")
        dispatch(project, 20)

        samples = once_it_shows(parent, ("job_processed_total", "greet", "completed"), 20)
        assert samples["job_queue_latency_milliseconds_bucket", "greet", "+Inf"] == 20
        crews = once_it_shows(parent, ("forge_workers_alive", "any"), 2)
        assert crews["db_query_duration_seconds_count", "workers/register"] == 2


def test_what_a_process_counted_before_it_was_killed_stays_counted(project: Project) -> None:
    with project.start("worker", "shop:app", "--processes", "2") as parent:
        wait_until(lambda: parent.output().count(" runs ") == 2, 40, "both work")
        dispatch(project, 10)
        once_it_shows(parent, ("job_processed_total", "greet", "completed"), 10)

        for child in psutil.Process(parent.pid).children():
            os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: parent.output().count(" runs ") == 4, 40, "they are started again")
        dispatch(project, 1)

        once_it_shows(parent, ("job_processed_total", "greet", "completed"), 11)


def test_processes_that_answered_late_are_not_a_scrape_behind_afterwards(
    project: Project,
) -> None:
    with project.start("worker", "shop:app", "--processes", "2") as parent:
        wait_until(lambda: parent.output().count(" runs ") == 2, 40, "both work")
        found = address(parent)
        children = psutil.Process(parent.pid).children()

        for child in children:
            child.suspend()
        read(scrape(found))
        for child in children:
            child.resume()

        for count in range(1, 4):
            dispatch(project, 1)
            wait_until(lambda: completed(project) == count, 30, "the job is completed")  # noqa: B023
            assert read(scrape(found))["job_processed_total", "greet", "completed"] == count


def test_counters_of_an_app_exist_since_the_first_process_began_to_count(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "counting.py").write_text(COUNTING)
    project.folder = tmp_path
    began = time.time()
    with project.start("worker", "counting:app", "--processes", "2") as parent:
        wait_until(lambda: parent.output().count(" runs ") == 2, 40, "both work")

        samples = once_it_shows(parent, ("seen_total",), 2)

    assert began < samples["seen_created",] < time.time()


def completed(project: Project) -> int:
    return int(project.row("select count(*) from forge_jobs where status = 'completed'")[0])


def dispatch(project: Project, count: int) -> None:
    project.rows(
        "select forge_dispatch('greet', jsonb_build_object('name', n::text)) "
        "from generate_series(1, %s) as n",
        count,
    )


def address(worker: Child) -> str:
    found = wait_until(
        lambda: re.search(r"metrics are on (http://\S+)", worker.output()),
        30,
        "it says where its metrics are",
    )
    assert found is not None
    return found[1]


def scrape(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def once_it_shows(worker: Child, key: tuple[str, ...], value: float) -> Samples:
    found = address(worker)
    samples: Samples = {}

    def is_shown() -> bool:
        nonlocal samples
        samples = read(scrape(found))
        return samples.get(key) == value

    wait_until(is_shown, 30, f"{key} is {value}")
    return samples
