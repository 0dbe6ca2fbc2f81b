"""Build the sdist and the wheel into dist/, and check them: `python -m tools.dist`.

The wheel is built from the sdist, must be the one that the checkout builds, and is installed into a
fresh environment for each supported Python that this machine has.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import interpreters
from tools.dist_contents import ROOT, sdist_problems, wheel_problems

DIST = ROOT / "dist"
LOCK = ROOT / "requirements" / "dev.lock"
PYTHONS = ("3.11", "3.12", "3.13")
SCRIPTS = ("forge", "forge-jobs")
IMPORTS = "import forge, forge.testing, forge.http; print(forge.__file__)"


class CommandFailed(Exception):
    """A command ended with an error."""


def main() -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    try:
        # The hatchling of the lock, not the newest: the same files on every machine.
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST)], ROOT)
        (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
        run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], ROOT)
        problems = [*wheel_problems(wheel), *sdist_problems(sdist), *_rebuilt(wheel)]
        for problem in problems:
            print(problem, file=sys.stderr)
        if not problems:
            for version in PYTHONS:
                print(_install(wheel, version), flush=True)
            print(f"{wheel.name} and {sdist.name} are in {DIST}")
    except CommandFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 1 if problems else 0


def _rebuilt(wheel: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], ROOT)
        own = Path(folder) / wheel.name
        if own.exists() and own.read_bytes() == wheel.read_bytes():
            return []
    return [f"{wheel.name} of the sdist differs from the wheel that the checkout builds"]


def _install(wheel: Path, version: str) -> str:
    """Install the wheel as a user does, and run the tests of a new project with it."""
    interpreter = interpreters.find(version)
    if interpreter is None:
        return f"Python {version} is not installed: NOT tested"
    with tempfile.TemporaryDirectory(prefix="forge-dist-") as name:
        folder = Path(name)
        programs = folder / "venv" / "bin"
        uv = [sys.executable, "-m", "uv", "-q"]
        run([*uv, "venv", "--python", interpreter, "venv"], folder)
        install = [*uv, "pip", "install", "--python", str(programs / "python"), "-c", str(LOCK)]
        forge = f"forge-jobs[embedded,server] @ {wheel.as_uri()}"
        run([*install, forge, "pytest", "pytest-asyncio"], folder)
        imported = run([str(programs / "python"), "-c", IMPORTS], folder)
        if not Path(imported.strip()).is_relative_to(folder.resolve()):
            raise CommandFailed(f"the environment imports {imported.strip()}, not the wheel")
        versions = {run([str(programs / each), "--version"], folder) for each in SCRIPTS}
        run([str(programs / "forge"), "init", "shop"], folder)
        tested = run([str(programs / "python"), "-m", "pytest"], folder / "shop")
    (printed,) = versions
    return f"Python {version}: {printed.strip()}; forge init: {tested.splitlines()[-1].strip(' =')}"


def run(command: list[str], folder: Path) -> str:
    """Run a command without this environment's settings, and return what it printed."""
    left_out = ("FORGE_", "PYTHON", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    ended = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    if ended.returncode:
        raise CommandFailed(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main())
