"""The files under deploy/, checked by the tools that read them."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from forge import Config
from forge.core.duration import parse_duration
from tests.surface.pages import CHECKOUT

DEPLOY = CHECKOUT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
BIN = Path(sys.executable).parent
# Kinds that Kubernetes itself does not define.
CUSTOM = {"Component", "Kustomization", "ScaledObject", "TriggerAuthentication"}
KUBERNETES_VERSION = "1.31"


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(KUBERNETES.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            name = document.get("metadata", {}).get("name", "")
            yield f"{path.relative_to(DEPLOY)} {document['kind']} {name}", document


DOCUMENTS = dict(documents())


def container_of(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pod and the only container of a workload."""
    (found,) = [d for name, d in DOCUMENTS.items() if name.endswith(kind)]
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


@pytest.mark.parametrize("name", [n for n, d in DOCUMENTS.items() if d["kind"] not in CUSTOM])
def test_kubernetes_accepts_the_manifest(name: str) -> None:
    kubernetes_validate.validate(DOCUMENTS[name], KUBERNETES_VERSION, strict=True)


def test_kustomizations_name_files_that_exist() -> None:
    for path in KUBERNETES.rglob("kustomization.yaml"):
        found = yaml.safe_load(path.read_text())
        files = [
            *found.get("resources", []),
            *(file for map_ in found.get("configMapGenerator", []) for file in map_["files"]),
        ]
        assert files
        for file in files:
            assert (path.parent / file).is_file(), f"{path}: {file}"


def test_every_file_is_named_on_a_page() -> None:
    pages = "".join(page.read_text() for page in (CHECKOUT / "docs").rglob("*.md"))

    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert str(path.relative_to(CHECKOUT)) in pages, path


@pytest.mark.parametrize("workload", ["Deployment forge-worker", "Deployment forge-server"])
def test_a_pod_has_probes_and_no_rights(workload: str) -> None:
    pod, container = container_of(workload)

    for probe in ("livenessProbe", "readinessProbe"):
        path, port = container[probe]["httpGet"].values()
        assert path == {"livenessProbe": "/livez", "readinessProbe": "/readyz"}[probe]
        assert port in {declared["name"] for declared in container["ports"]}
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] >= 10_000
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_worker_has_time_to_finish_and_to_release_its_jobs() -> None:
    settings = tomllib.loads((KUBERNETES / "base" / "forge.toml").read_text())
    grace = parse_duration(settings["worker"]["shutdown_grace"]).total_seconds()
    pod, _ = container_of("Deployment forge-worker")
    assert pod["terminationGracePeriodSeconds"] >= grace + 10

    default = Config().worker.shutdown_grace.total_seconds()
    compose = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    stop = parse_duration(compose["services"]["worker"]["stop_grace_period"]).total_seconds()
    assert stop >= default + 10
    unit = (DEPLOY / "systemd" / "forge-worker@.service").read_text()
    assert int(option(unit, "TimeoutStopSec")) >= default + 10


def test_a_server_has_time_to_finish_its_requests() -> None:
    from forge.cli.processes.serving import SHUTDOWN_TIMEOUT

    pod, container = container_of("Deployment forge-server")
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][-1].split("(")[1].rstrip(")"))

    assert pod["terminationGracePeriodSeconds"] > SHUTDOWN_TIMEOUT + pause
    unit = (DEPLOY / "systemd" / "forge-server.service").read_text()
    assert int(option(unit, "TimeoutStopSec")) > SHUTDOWN_TIMEOUT


def test_the_settings_are_settings(tmp_path: Path) -> None:
    config = Config.load(KUBERNETES / "base" / "forge.toml")

    assert config.worker.max_concurrent == 20
    assert config.auth.is_configured


def test_the_commands_are_commands() -> None:
    compose = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    commands = [
        service["command"]
        for name, service in compose["services"].items()
        if name in ("migrate", "worker", "server")
    ]
    workloads = ("Job forge-migrate", "Deployment forge-worker", "Deployment forge-server")
    commands += [container_of(workload)[1]["args"] for workload in workloads]
    units = [unit.read_text() for unit in (DEPLOY / "systemd").glob("*.service")]
    commands += [option(unit, "ExecStart").split()[1:] for unit in units]

    for command in commands:
        # --help at the end: click reads all options before it.
        ended = run([BIN / "forge", *command, "--help"])
        assert ended.returncode == 0, (command, ended.stderr)
        options = {word for word in command if word.startswith("--")}
        assert all(name in ended.stdout for name in options), command


def test_hadolint_accepts_the_dockerfile() -> None:
    ended = run([BIN / "hadolint", DEPLOY / "container" / "Dockerfile"])

    assert ended.returncode == 0, ended.stdout


@pytest.mark.skipif(
    not shutil.which("systemd-analyze"),
    reason="systemd is not installed; on Debian: apt-get install systemd",
)
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in (DEPLOY / "systemd").iterdir():
        text = re.sub(r"^ExecStart=\S+", f"ExecStart={BIN / 'forge'}", unit.read_text(), flags=re.M)
        (tmp_path / unit.name).write_text(text.replace("/srv/shop", str(tmp_path)))

    for unit in tmp_path.glob("forge*"):
        ended = run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit])
        assert ended.returncode == 0, ended.stderr
        assert "forge" not in ended.stderr, ended.stderr


def test_keda_reads_numbers_that_the_database_returns() -> None:
    (scaled,) = [d for d in DOCUMENTS.values() if d["kind"] == "ScaledObject"]
    settings = tomllib.loads((KUBERNETES / "base" / "forge.toml").read_text())
    by_slots, by_time = scaled["spec"]["triggers"]

    assert scaled["spec"]["scaleTargetRef"]["name"] == "forge-worker"
    assert int(by_slots["metadata"]["targetQueryValue"]) == settings["worker"]["max_concurrent"]
    assert "oldest_seconds" in by_time["metadata"]["query"]


def option(unit: str, name: str) -> str:
    found = re.search(rf"^{name}=(.*)$", unit, re.M)
    assert found, name
    return found[1]


def run(command: list[Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=60, check=False
    )
