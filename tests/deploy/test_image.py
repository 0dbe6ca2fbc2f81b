"""The steps of the Dockerfile in a root file system of Debian, and a worker that runs in it.

It is no container engine: the base image is what debootstrap installs, with Debian's Python.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.deploy.test_files import DEPLOY
from tests.faults.kit.process import spawn, wait_until
from tests.faults.kit.proxy import Proxy
from tests.surface.pages import CHECKOUT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        os.getuid() != 0 or not shutil.which("debootstrap") or not shutil.which("unshare"),
        reason="needs root and debootstrap; on Debian: apt-get install debootstrap util-linux",
    ),
]

PYTHON = "python3.11"
APP = """
import os

import forge

app = forge.Forge()


@app.job
async def look(ctx: forge.JobContext) -> dict:
    try:
        open("/app/written", "w")
    except OSError as error:
        refused = type(error).__name__
    else:
        refused = ""
    pid_1 = open("/proc/1/cmdline").read().replace(chr(0), " ")
    return {"uid": os.getuid(), "pid_1": pid_1, "write": refused}
"""
# Within namespaces of its own: a read-only root, /tmp in memory, its own processes, no rights.
ENTER = """
mount --bind {root} {root}
mount -o remount,ro,bind {root}
mount -t tmpfs tmpfs {root}/tmp
mount -t proc proc {root}/proc
exec chroot --userspec=10001:10001 {root} env -i {env} /usr/bin/env -C /app {command}
"""


def test_the_image_runs_a_worker(tmp_path: Path, database_url: str) -> None:
    root = build(tmp_path)
    settings = environment(root) | {"FORGE_WORKER_METRICS_PORT": str(free_port())}
    entry, *command = [*instruction("ENTRYPOINT"), *instruction("CMD")]
    with (
        Proxy.in_thread(database_url) as tcp,
        psycopg.connect(database_url, autocommit=True) as psql,
    ):
        settings["FORGE_DATABASE_URL"] = tcp.url()
        run_worker(root, settings, [f"/opt/venv/bin/{entry}", *command, "--app", "jobs:app"], psql)


def run_worker(
    root: Path, settings: dict[str, str], command: list[str], psql: "psycopg.Connection[Any]"
) -> None:
    """Run the worker in its namespaces, probe it, have it run a job, and stop it."""
    env = " ".join(shlex.quote(f"{name}={value}") for name, value in settings.items())
    script = ENTER.format(root=root, env=env, command=shlex.join(command))
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script]

    with spawn(isolated) as container, ExitStack() as stack:
        wait_until(lambda: "metrics are on" in container.output(), 60, "the worker has started")
        (init,) = children_of(container.pid)
        stack.callback(kill, init)
        assert f"http://0.0.0.0:{settings['FORGE_WORKER_METRICS_PORT']}" in container.output()
        probe = re.search(r"HEALTHCHECK .*?CMD (\[.*?\])", dockerfile(), re.S)
        assert probe
        ended = subprocess.run(
            [
                "chroot",
                str(root),
                "env",
                *(f"{n}={v}" for n, v in settings.items()),
                *json.loads(probe[1]),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr

        (job,) = psql.execute("select forge_dispatch('look', '{}')").fetchone() or ()

        def output() -> Any:
            row = psql.execute("select output from forge_jobs where id = %s", [job]).fetchone()
            return row and row[0]

        found = wait_until(output, 30, "the job is completed")
        assert found["uid"] == 10001
        assert found["write"] == "OSError"
        assert "forge" in found["pid_1"]

        # The signal that a container engine sends, to PID 1.
        os.kill(init, signal.SIGTERM)
        assert container.wait(40) == 0, container.output()


def build(folder: Path) -> Path:
    """Follow the Dockerfile's instructions; both stages share one root."""
    root, context = folder / "root", folder / "context"
    packages = "--include=python3,python3-venv,ca-certificates"
    do("debootstrap", "--variant=minbase", packages, "bookworm", root)
    (root / "usr/local/bin/python").symlink_to(f"/usr/bin/{PYTHON}")
    wheels = root / "wheels"
    do(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        wheels,
        CHECKOUT,
    )
    do(
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--require-hashes",
        "-d",
        wheels,
        "-r",
        CHECKOUT / "requirements" / "run.lock",
    )
    context.mkdir()
    (context / "jobs.py").write_text(APP)
    (context / "requirements.txt").write_text(
        "--no-index\n--find-links /wheels\nforge-jobs[server]\n"
    )
    for line in dockerfile().replace("\\\n", " ").splitlines():
        verb, _, rest = line.partition(" ")
        if verb == "RUN":
            do(
                "chroot",
                root,
                "env",
                "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "sh",
                "-ec",
                rest,
            )
        elif verb == "COPY" and "--from" not in rest:
            source, target = rest.split()[-2:]
            place = root / target.lstrip("/")
            if source == ".":
                shutil.copytree(context, place, dirs_exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(context / source, place)
    assert any((root / "opt/venv").rglob("*.pyc"))
    return root


def environment(root: Path) -> dict[str, str]:
    """Return what the ENV instructions of the last stage set."""
    found: dict[str, str] = {}
    for line in dockerfile().rpartition("\nFROM ")[2].splitlines():
        if line.startswith("ENV "):
            found |= dict(word.split("=", 1) for word in shlex.split(line[4:]))
    found["PATH"] = found["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
    return found


def instruction(name: str) -> list[str]:
    found = re.search(rf"^{name} (\[.*\])$", dockerfile(), re.M)
    assert found, name
    return list(json.loads(found[1]))


def dockerfile() -> str:
    return (DEPLOY / "container" / "Dockerfile").read_text()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def kill(pid: int) -> None:
    """End a container whose test failed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def do(*command: Any) -> None:
    ended = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"


def test_the_wheel_has_what_the_image_needs(tmp_path: Path) -> None:
    do(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        CHECKOUT,
    )
    (wheel,) = tmp_path.glob("*.whl")

    names = zipfile.ZipFile(wheel).namelist()

    assert "forge/cli/processes/probe.py" in names
    assert "forge/py.typed" in names
