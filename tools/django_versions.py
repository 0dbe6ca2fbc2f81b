"""Run the Django tests on every supported version: `python -m tools.django_versions`.

Django 6.0 and later need Python 3.12, so this uses a second interpreter, where one is installed,
with a virtual environment of its own. The contract needs Django's own tests, which its sdist has.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

import psycopg

from forge.store.embedded import Binaries, Cluster
from tools import interpreters

ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "tests" / "integrations" / "django" / "project"
LOCK = ROOT / "requirements" / "django.lock"
VENV = ROOT / ".venv-django"
PYTHON = VENV / "bin" / "python"
CANDIDATES = ("3.12", "3.13", "3.14")
# Of these only Django itself is installed, in a folder of its own; the lock has the newest one.
OLDER = ("4.2.30", "5.2.19", "6.0.10")
NEWEST = "6.1.3"
TESTS = VENV / "django-tests"
PYTEST_CASES = "orders/tests/pytest_django_cases.py"


def main() -> int:
    interpreter = next(filter(None, map(interpreters.find, CANDIDATES)), None)
    if interpreter is None:
        print(
            "Django 6.0 and 6.1 are NOT tested: they need Python 3.12 or newer, and none of "
            f"{', '.join(CANDIDATES)} is installed"
        )
        return 0
    _install(interpreter)
    with tempfile.TemporaryDirectory(prefix="forge-django-") as folder:
        server = Cluster(Path(folder) / "postgres", Binaries.from_wheel(), {"fsync": "off"})
        server.init()
        server.start()
        try:
            passed = [_test(version, server) for version in (*OLDER, NEWEST)]
            passed.append(_follow_page(server))
        finally:
            server.stop("immediate")
    return 0 if all(passed) else 1


def _install(interpreter: str) -> None:
    """Make the environment, unless it has what this file and the lock say."""
    stamp = sha256(LOCK.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    marker = VENV / "ready"
    if marker.exists() and marker.read_text() == stamp:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", str(VENV)], check=True)
    _pip("install", "--require-hashes", "-r", str(LOCK))
    _pip("install", "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    for version in OLDER:
        _pip("install", "--no-deps", "--target", str(_folder(version)), f"Django=={version}")
    _pip("download", "--no-binary", ":all:", "--no-deps", f"Django=={NEWEST}", "-d", str(VENV))
    (sdist,) = VENV.glob("[dD]jango-*.tar.gz")
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            _, _, path = member.name.partition("/tests/")
            if path.startswith("tasks/") and (source := archive.extractfile(member)):
                target = TESTS / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read())
    marker.write_text(stamp)


def _pip(*arguments: str) -> None:
    subprocess.run([str(PYTHON), "-m", "pip", *arguments, "-q"], check=True)


def _folder(version: str) -> Path:
    return VENV / f"django-{version}"


def _follow_page(server: Cluster) -> bool:
    """Do what the page on Django says on the newest version, with django.tasks."""
    url = server.url("page")
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(b"create database page")
    own = {key: value for key, value in os.environ.items() if not key.startswith("FORGE_")}
    with tempfile.TemporaryDirectory(prefix="forge-page-") as folder:
        ended = subprocess.run(
            [str(PYTHON), "-m", "tests.integrations.django.page", folder, url, "--newest"],
            cwd=ROOT,
            env=own,
            capture_output=True,
            text=True,
            timeout=300,
        )
    is_passed = ended.returncode == 0 and "OK" in ended.stdout
    print(f"docs/howto/django.md: {'passed' if is_passed else ended.stdout + ended.stderr}")
    return is_passed


def _test(version: str, server: Cluster) -> bool:
    """Run the project's tests on one version, with the contract on the newest."""
    name = f"shop_{version.replace('.', '_')}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
    is_newest = version == NEWEST
    own = {key: value for key, value in os.environ.items() if not key.startswith("FORGE_")}
    env = own | {
        "PYTHONPATH": str(TESTS if is_newest else _folder(version)),
        "SHOP_DATABASE": server.url(name),
        "DJANGO_SETTINGS_MODULE": "shop.settings",
    }
    labels = ["orders", "contract"] if is_newest else ["orders"]
    manage = _run("manage.py", "test", "--no-input", *labels, env=env)
    pytest = _run("-m", "pytest", "-q", PYTEST_CASES, env=env)
    for ended in (manage, pytest):
        if ended.returncode:
            print(f"Django {version}:\n{ended.stdout}{ended.stderr}", file=sys.stderr)
    ran = next((line for line in manage.stderr.splitlines() if line.startswith("Ran ")), "")
    *_, cases = pytest.stdout.splitlines() or [""]
    print(f"Django {version}: {ran}; pytest-django: {cases}", flush=True)
    return not manage.returncode and not pytest.returncode


def _run(*arguments: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run Python in the project's folder."""
    return subprocess.run(
        [str(PYTHON), *arguments],
        cwd=PROJECT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )


if __name__ == "__main__":
    sys.exit(main())
