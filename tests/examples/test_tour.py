"""The tour of `make run`: its output matches the database, and it leaves nothing behind."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from tests.cli.command import FORGE
from tests.cli.terminal import terminal
from tests.faults.kit.process import wait_until
from tests.surface.test_dependencies import RUN_LOCK, pins

CHECKOUT = Path(__file__).parents[2]
TOUR = [sys.executable, str(CHECKOUT / "examples/tour/run.py")]
# The examples that `make` starts with these packages.
IMPORTS = """
import importlib, pkgutil
for example in ("examples.feeds", "examples.firm"):
    for module in pkgutil.iter_modules([example.replace(".", "/")], f"{example}."):
        importlib.import_module(module.name)
"""
# Hides packages from every process, as if they were not installed.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is not in requirements/run.lock", name=name)

sys.meta_path.insert(0, Blocker())
"""
IT_STAYS_UP = "The workers stay up until Ctrl-C"
LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#token=(forge_[\w-]+)")
# What the dashboard shows soon after the start: where it is listed, and how to find it.
LIVING = [
    ("progress", "_api/jobs", {"type": "export_orders", "status": "running", "q": "row "}),
    ("a dead letter", "_api/jobs", {"type": "restock", "status": "dead_letter"}),
    ("a retry", "_api/jobs", {"type": "charge_card", "error_class": "transient"}),
    ("a receipt that waits", "_api/jobs", {"type": "send_receipt", "status": "pending"}),
    ("a schedule", "_api/schedules", {"type": "fetch_prices"}),
]


def test_without_a_terminal_it_ends_and_its_output_matches_the_database(empty_url: str) -> None:
    env = os.environ | {"FORGE_DATABASE_URL": empty_url}

    outputs = [_run_to_its_end(env) for _ in range(2)]

    for output in outputs:
        assert _summary(output) == _rows_of(empty_url, _run_id(output))
        assert {row[0]: row[1:4] for row in _summary(output)} == {
            "bake_cake": ("completed", 1, 1),
            "call_flaky_service": ("completed", 1, 3),
            "count_letters": ("completed", 10_000, 10_000),
            "send_reminder": ("completed", 1, 1),
        }
        assert IT_STAYS_UP not in output
        assert "\x1b" not in output


def test_it_runs_with_the_packages_of_make_run_alone(empty_url: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(blocked=_not_for_running()))
    env = os.environ | {"FORGE_DATABASE_URL": empty_url, "PYTHONPATH": str(tmp_path)}

    refused = subprocess.run([sys.executable, "-c", "import pytest"], env=env, check=False)
    imported = subprocess.run([sys.executable, "-c", IMPORTS], env=env, cwd=CHECKOUT, check=False)
    output = _run_to_its_end(env)

    assert refused.returncode != 0
    assert imported.returncode == 0
    assert "count_letters" in output


def test_without_a_terminal_it_prints_each_step_on_its_own_line(empty_url: str) -> None:
    output = _run_to_its_end(os.environ | {"FORGE_DATABASE_URL": empty_url})

    # The printed delay is the remaining time, so it only has an upper bound.
    first, second = _waits(empty_url, _run_id(output))
    assert first >= 1
    assert 2 <= second <= 2.2
    lines = output.splitlines()
    assert any(re.match(r"bake_cake +\d+% +running +bake layer 2", line) for line in lines)
    for attempt, most in ((1, 1), (2, 2)):
        failed = rf"call_flaky_service .*attempt {attempt} failed: .*; again in [0-{most}]\.\d s"
        assert any(re.match(failed, line) for line in lines), output
    assert any(re.match(r"send_reminder +\d+% +pending +due in [01] s", line) for line in lines)
    assert re.search(r"10,000 of 10,000 done, [\d,]+ a second; dispatched in", output)


def test_in_a_terminal_it_stays_up_until_ctrl_c_and_leaves_nothing_behind(tmp_path: Path) -> None:
    env = _embedded_in(tmp_path)
    with terminal(TOUR, env) as tour:
        wait_until(lambda: IT_STAYS_UP in tour.shown, 90, "the tour is over")

        dispatched = subprocess.run(
            [FORGE, "dispatch", "bake_cake", '{"flavour": "lemon", "layers": 0}', "--watch"],
            env=env,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        tour.ctrl_c()

        assert dispatched.returncode == 0, dispatched.stderr
        assert "a lemon cake of 0 layers" in dispatched.stdout
        assert tour.wait(30) == 0, tour.shown
        assert "Traceback" not in tour.shown
    wait_until(lambda: not _processes_of(tmp_path), 40, "nothing is left running")


def test_in_a_terminal_its_link_signs_in_to_a_living_dashboard(empty_url: str) -> None:
    env = os.environ | {"FORGE_DATABASE_URL": empty_url, "TERM": "xterm"}
    with terminal(TOUR, env) as tour:
        wait_until(lambda: LINK.search(tour.shown), 90, "the link is printed")
        found = LINK.search(tour.shown)
        assert found is not None
        headers = {"Authorization": f"Bearer {found[2]}"}
        with httpx.Client(base_url=found[1], headers=headers) as http:
            assert http.get("/").headers["content-type"].startswith("text/html")
            assert http.get("/_api/me").json()["read_only"] is False
            for seen, where, filters in LIVING:
                path = f"/{where}"

                def has_items(path: str = path, filters: dict[str, str] = filters) -> bool:
                    return bool(http.get(path, params=filters).json()["items"])

                wait_until(has_items, 90, f"there is {seen}")
            workers = http.get("/_api/workers").json()["items"]
            assert [worker["state"] for worker in workers] == ["alive", "alive"]
        tour.ctrl_c()
        assert tour.wait(60) == 0, tour.shown


@pytest.mark.parametrize("moment", ["Starting PostgreSQL", "This run is", "bake layer 1"])
def test_ctrl_c_in_the_middle_ends_it_cleanly(tmp_path: Path, moment: str) -> None:
    with terminal(TOUR, _embedded_in(tmp_path)) as tour:
        wait_until(lambda: moment in tour.shown, 90, f"it shows {moment!r}")

        tour.ctrl_c()

        assert tour.wait(60) == 0, tour.shown
        assert "stopped" in tour.shown
        assert "Traceback" not in tour.shown
    wait_until(lambda: not _processes_of(tmp_path), 40, "nothing is left running")


def test_an_unreachable_database_is_reported_in_one_line() -> None:
    env = os.environ | {"FORGE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}

    ended = subprocess.run(TOUR, env=env, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "FORGE_DATABASE_URL" in ended.stderr


def _embedded_in(folder: Path) -> dict[str, str]:
    env = os.environ | {"FORGE_EMBEDDED_FOLDER": str(folder / ".forge"), "TERM": "xterm"}
    env.pop("FORGE_DATABASE_URL", None)
    return env


def _not_for_running() -> list[str]:
    """Return the modules of all packages that requirements/run.lock does not have."""
    kept = {name.replace("-", "_") for name in (*pins(RUN_LOCK), "forge-jobs", "pip")}
    return [
        module
        for module, packages in packages_distributions().items()
        if not kept & {re.sub(r"[-.]", "_", package).lower() for package in packages}
    ]


def _run_to_its_end(env: dict[str, str]) -> str:
    ended = subprocess.run(TOUR, env=env, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def _run_id(output: str) -> str:
    found = re.search(r"This run is ([0-9a-f-]{36})", output)
    assert found is not None, output
    return found[1]


def _summary(output: str) -> list[tuple[Any, ...]]:
    """Read the table at the end: type, status, jobs, attempts and seconds."""
    table = output[output.index("job type") :].splitlines()[1:]
    cells = [re.split(r"\s{2,}", line.replace(",", "").strip()) for line in table if line.strip()]
    return [
        (job_type, status, int(jobs), int(attempts), pytest.approx(float(seconds), abs=0.011))
        for job_type, status, jobs, attempts, seconds, _ in cells
    ]


def _rows_of(url: str, run: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "select job_type, status, count(*), sum(attempts)::int,"
            " extract(epoch from max(completed_at) - min(created_at))::float8"
            " from forge_jobs where correlation_id = %s group by 1, 2 order by 1, 2",
            [run],
        )
        return found.fetchall()


def _waits(url: str, run: str) -> list[float]:
    """Return the two backoff delays of the job that fails twice, in seconds."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "select extract(epoch from coalesce("
            "  lead(a.started_at) over (order by a.lease), job.scheduled_at) - a.ended_at)::float8"
            " from forge_jobs as job join forge_attempts as a on a.job_id = job.id"
            " where correlation_id = %s and job_type = 'call_flaky_service' order by a.lease",
            [run],
        )
        return [row[0] for row in found]


def _processes_of(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            opened = process.environ().get("FORGE_EMBEDDED_FOLDER", "")
            if str(folder) in command or str(folder) in opened:
                found.append(command)
    return found
