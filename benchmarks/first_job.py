"""`python -m benchmarks.first_job`: from `pip install` to a finished job and a passing test."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

CHECKOUT = Path(__file__).parents[1]
DISPATCH = ("dispatch", "export_users", '{"format": "csv"}', "--watch")


@click.command()
@click.option("--fastapi", "kind", flag_value="--fastapi", help="With the FastAPI project.")
def main(kind: str | None) -> None:
    """Measure each step that a new user takes, in an empty folder and a fresh environment."""
    steps: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, seconds in _steps(Path(folder), kind):
            steps[name] = seconds
            click.echo(f"{name:34} {seconds:7.1f} s")
    click.echo(f"{'from pip install to the job':34} {_until(steps, 'a job of my own'):7.1f} s")
    click.echo(f"{'from pip install to the test':34} {sum(steps.values()):7.1f} s")


def _steps(folder: Path, kind: str | None) -> Iterator[tuple[str, float]]:
    """Take the steps, and yield the name and the duration of each."""
    wheel = _wheel(folder)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FORGE_", "PG"))}
    own = folder / "venv" / "bin"
    env["PATH"] = f"{own}{os.pathsep}{env['PATH']}"
    shop = folder / "shop"

    def run(*command: str | Path, cwd: Path = shop) -> float:
        began = time.perf_counter()
        ended = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
        if ended.returncode != 0:
            raise RuntimeError(f"{command} failed:\n{ended.stdout}{ended.stderr}")
        return time.perf_counter() - began

    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    packages = (f"{wheel}[embedded,server]", "pytest", "pytest-asyncio")
    yield "pip install", run(own / "pip", "install", "-q", *packages, cwd=folder)
    yield "forge init", run(own / "forge", "init", "shop", *filter(None, [kind]), cwd=folder)
    with _dev(own, shop, env):
        yield "a job of my own", run(own / "forge", *DISPATCH)
    yield "a test of my own", run(own / "pytest")


@contextmanager
def _dev(own: Path, shop: Path, env: dict[str, str]) -> Iterator[None]:
    """Run `forge dev` for the block; the first dispatch waits until its database is there."""
    dev = subprocess.Popen(
        [own / "forge", "dev", "--port", "0"],
        cwd=shop,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        dev.terminate()
        dev.wait(60)


def _until(steps: dict[str, float], last: str) -> float:
    names = list(steps)
    return sum(steps[name] for name in names[: names.index(last) + 1])


def _wheel(folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    main()
