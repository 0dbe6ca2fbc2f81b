"""Build the dashboard into the package: `python -m tools.dashboard [--check]`.

`python -m tools.dashboard npm test` runs Node's programs in its folder.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.node import alone, command, environment, install, run

ROOT = Path(__file__).parent.parent
DASHBOARD = ROOT / "dashboard"
BUILT = ROOT / "src" / "forge" / "http" / "dashboard" / "built"


class BuildFailed(Exception):
    """The dashboard could not be built."""


def build(folder: Path) -> None:
    """Build the dashboard into a folder."""
    ended = run(
        "vite", "build", "--logLevel", "warn", "--outDir", folder.resolve(), folder=DASHBOARD
    )
    if ended.returncode != 0:
        raise BuildFailed(f"Vite cannot build {DASHBOARD}:\n{ended.stdout}{ended.stderr}")


def stale_files() -> list[str]:
    """Return the built files that differ from what the sources build now."""
    with tempfile.TemporaryDirectory() as made:
        build(Path(made))
        now, committed = _contents(Path(made)), _contents(BUILT)
    return sorted(
        name for name in now.keys() | committed.keys() if now.get(name) != committed.get(name)
    )


def write(is_check: bool) -> list[str]:
    """Write the types of the API and the built files, or compare them; return what differs."""
    install(DASHBOARD)
    with alone(DASHBOARD):
        schema = run("node", "scripts/schema.js", *(["--check"] * is_check), folder=DASHBOARD)
        if schema.returncode != 0:
            return ["dashboard/src/api/schema.ts"] if is_check else _failed(schema.stderr)
        if is_check:
            return [f"{BUILT.relative_to(ROOT)}/{name}" for name in stale_files()]
        with tempfile.TemporaryDirectory() as made:
            build(Path(made))
            shutil.rmtree(BUILT, ignore_errors=True)
            shutil.copytree(made, BUILT)
        return []


def _failed(errors: str) -> list[str]:
    raise BuildFailed(f"the types of the API cannot be generated:\n{errors}")


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def main() -> int:
    program, *arguments = sys.argv[1:] or ["--write"]
    if program in ("--write", "--check"):
        stale = write(program == "--check")
        for name in stale:
            print(f"{name} is out of date; run `make format` and commit it")
        return 1 if stale else 0
    if program != "npm" or arguments[:1] == ["run"]:
        install(DASHBOARD)
    return subprocess.call(
        command(program, *arguments, folder=DASHBOARD), cwd=DASHBOARD, env=environment()
    )


if __name__ == "__main__":
    sys.exit(main())
