"""Rules and dashboard as Prometheus reads them, and a real one that scrapes a real system."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forge.telemetry.metrics.registries import Metrics
from tests.cli.command import Project
from tests.faults.kit.process import Child, spawn, wait_until
from tests.http.test_server_command import address as server_address
from tests.http.test_server_command import let_in
from tests.surface.pages import CHECKOUT, HOSTED
from tests.telemetry.test_processes import address as worker_address

DEPLOY = CHECKOUT / "deploy"
RULES = DEPLOY / "prometheus" / "forge.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "forge.json"
SUFFIX = re.compile(r"_(bucket|sum|count)$")
METRIC = re.compile(r"\b(?:job|http|db|external|forge|s3|cloudfront|upload|image)_[a-z0-9_]+\b")

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")),
    reason="Prometheus is not installed; on Debian: apt-get install prometheus",
)


@needs_prometheus
def test_the_rules_are_rules() -> None:
    promtool("check", "rules", str(RULES))
    promtool("check", "config", str(RULES.with_name("prometheus.yml")))


@needs_prometheus
def test_the_alerts_fire_when_they_should_and_not_otherwise() -> None:
    promtool("test", "rules", str(RULES.with_name("forge.rules.test.yml")))


def test_rules_and_dashboard_use_existing_metrics() -> None:
    texts = (RULES.read_text(), *expressions(), *variables())
    asked = {name for text in texts for name in names_in(text)}
    known = known_names()

    unknown = {name for name in asked if name not in known and SUFFIX.sub("", name) not in known}

    assert len(asked) > 15
    assert unknown == set()


def test_every_alert_has_a_test() -> None:
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    tested = set(
        re.findall(r"alertname: (\w+)", RULES.with_name("forge.rules.test.yml").read_text())
    )

    assert alerts == tested


def test_every_alert_has_a_runbook_entry() -> None:
    page = (CHECKOUT / "docs" / "howto" / "troubleshooting.md").read_text()
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    urls = re.findall(r"runbook_url: (\S+)", RULES.read_text())

    assert [url.rpartition("#")[2] for url in urls] == [alert.lower() for alert in alerts]
    assert all(url.startswith(f"{HOSTED}docs/howto/troubleshooting.md#") for url in urls)
    assert re.findall(r"^### (Forge\w+)", page, re.MULTILINE) == alerts


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len(panels) > 10
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    (tmp_path / "shop.py").write_text((CHECKOUT / "tests/cli/apps/shop.py").read_text())
    made = Project(database_url, tmp_path)
    made.env["FORGE_WORKER_METRICS_PORT"] = "0"
    return made


@pytest.fixture
def system(project: Project) -> Iterator[tuple[Child, Child]]:
    """A server and a worker."""
    let_in(project, "--role", "staff", "--role", "user")
    with (
        project.start("server", "shop:app", "--port", "0") as server,
        project.start("worker", "shop:app") as worker,
    ):
        yield server, worker


@needs_prometheus
def test_a_real_prometheus_scrapes_a_real_server_and_worker(
    project: Project, system: tuple[Child, Child], tmp_path: Path
) -> None:
    server, worker = system
    targets = {
        "forge-server": server_address(server).removeprefix("http://"),
        "forge-worker": worker_address(worker).removeprefix("http://").removesuffix("/metrics"),
    }
    with prometheus(tmp_path, targets) as base:
        wait_until(lambda: all_are_up(base), 60, "both targets are up")
        project.rows(
            "select forge_dispatch('greet', jsonb_build_object('name', n::text)) "
            "from generate_series(1, 25) as n"
        )

        wait_until(
            lambda: value(base, 'sum(job_processed_total{job_type="greet"})') == 25,
            60,
            "Prometheus has counted them",
        )
        wait_until(lambda: value(base, "sum(max by (crew) (forge_workers_alive))") == 1, 30, "one")
        wait_until(lambda: value(base, "max(forge_canary_latency_seconds)"), 60, "a canary sang")
        refused = [ask for ask in panel_queries() if not is_answered(base, ask)]

    assert refused == []


def prometheus(folder: Path, targets: dict[str, str]) -> Any:
    """Run a Prometheus that scrapes these targets every second and knows the rules."""
    from contextlib import contextmanager

    @contextmanager
    def running() -> Iterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        jobs = [
            {"job_name": name, "static_configs": [{"targets": [target]}]}
            for name, target in targets.items()
        ]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": jobs,
        }
        file = folder / "prometheus.json"
        file.write_text(json.dumps(config))  # JSON is YAML, too
        command = [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with spawn(command) as child:
            base = f"http://127.0.0.1:{port}"
            wait_until(lambda: not child.is_alive or is_ready(base), 60, "it is ready")
            assert child.is_alive, child.output()
            yield base

    return running()


def is_ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/-/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def all_are_up(base: str) -> bool:
    return value(base, "sum(up)") == 2


def value(base: str, query: str) -> float | None:
    answer = httpx.get(f"{base}/api/v1/query", params={"query": query}, timeout=10).json()
    assert answer["status"] == "success", answer
    result = answer["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def is_answered(base: str, query: str) -> bool:
    now = time.time()
    span = {"query": query, "start": str(now - 60), "end": str(now), "step": "15"}
    answer = httpx.get(f"{base}/api/v1/query_range", params=span, timeout=10)
    return answer.status_code == 200


def panel_queries() -> list[str]:
    """Return the dashboard's queries with its variables filled in."""
    return [
        text.replace("$__rate_interval", "1m").replace("$job_type", ".*") for text in expressions()
    ]


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def variables() -> list[str]:
    """Return what the dashboard asks for to fill its menus."""
    menus = json.loads(DASHBOARD.read_text())["templating"]["list"]
    return [menu["query"] for menu in menus if menu["type"] == "query"]


def names_in(text: str) -> set[str]:
    expression = re.sub(r"#.*|\b(?:by|on) \([^)]*\)|\{\{[^}]*\}\}|(?:alert|record): .*", "", text)
    return set(METRIC.findall(expression)) - {"job_type"}


def known_names() -> set[str]:
    metrics = Metrics()
    instruments = [*metrics.api.instruments(), *metrics.worker.instruments()]
    return {instrument.name for instrument in instruments}


def promtool(*arguments: str) -> None:
    ended = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
