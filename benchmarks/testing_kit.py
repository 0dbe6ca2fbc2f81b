"""`python -m benchmarks.testing_kit`: a suite of user tests, and how long a test waits to begin."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from textwrap import dedent

import click

from benchmarks.bound import judged

# Tests of each kind.
KINDS = 4
APP = """
    from forge import Forge, JobContext, Retry

    app = Forge()

    @app.job(retry=Retry(max_attempts=3))
    async def export(ctx: JobContext, input: dict) -> int:
        if ctx.attempt < 2:
            raise ConnectionError("storage is unavailable")
        ctx.progress(50, "half")
        await mail.dispatch({"n": input["n"]}, delay="1h")
        return input["n"]

    @app.job
    def mail(ctx: JobContext, input: dict) -> int:
        return input["n"]
    """
TESTS = """
    import pytest
    from forge.testing import advance, assert_dispatched, run_all, run_one, sync
    from shop import export, mail

    each = pytest.mark.parametrize("n", range({times}))

    @each
    async def test_a_retry_and_a_delay(forge_app, n):
        await export.dispatch({{"n": n}})
        assert (await run_all(forge_app)).completed == 1
        await advance(forge_app, "1h")
        assert (await run_all(forge_app)).completed == 1

    @each
    async def test_one_job(forge_app, n):
        assert await run_one(await export.dispatch({{"n": n}})) == n
        await assert_dispatched(forge_app, mail, {{"n": n}}, times=1)

    @each
    async def test_a_worker(forge_app, forge_worker, n):
        handle = await mail.dispatch({{"n": n}})
        assert await handle.result(timeout="50s") == n

    @each
    def test_a_plain_test(forge_app, n):
        handle = forge_app.sync.dispatch(mail, {{"n": n}})
        assert sync.run_one(handle) == n
    """
# Writes down how long each test waited for its database.
CONFTEST = """
    import os, time
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(fixturedef):
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.argname == "forge_database_url":
                with open(f"waits.{os.getpid()}", "a") as file:
                    print(time.perf_counter() - began, file=file)
    """
SETTINGS = """
    [pytest]
    forge_app = shop:app
    asyncio_mode = auto
    asyncio_default_fixture_loop_scope = function
    """


@click.command()
@click.option("--tests", default=200, show_default=True)
@click.option("--processes", default=2, show_default=True)
def main(tests: int, processes: int) -> None:
    """Measure; exit with 1 if the suite takes more than a minute, or a test waits long."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, waits = run_suite(Path(folder), tests, processes)
    suite = f"{tests} tests with the kit in {processes} processes: seconds"
    held = judged(suite, seconds, "≤ 60", f"{seconds / tests * 1000:.0f} ms per test")
    slowest = f"the longest {max(waits):.3f} s"
    held &= judged("a test waits for its database: seconds", median(waits), "≤ 0.2", slowest)
    sys.exit(0 if held else 1)


def run_suite(folder: Path, tests: int, processes: int) -> tuple[float, list[float]]:
    """Return the seconds of a whole run of pytest, and of each test's wait for its database."""
    files = {"shop.py": APP, "conftest.py": CONFTEST, "pytest.ini": SETTINGS}
    files["test_shop.py"] = TESTS.format(times=tests // KINDS)
    for name, text in files.items():
        (folder / name).write_text(dedent(text))
    env = {name: value for name, value in os.environ.items() if not name.startswith("FORGE_")}
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", str(processes), "-p", "no:cacheprovider"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - began
    if ran.returncode != 0 or f"{tests} passed" not in ran.stdout:
        raise RuntimeError(f"the suite failed, so the figure is invalid:\n{ran.stdout}{ran.stderr}")
    waits = [float(line) for file in folder.glob("waits.*") for line in file.open()]
    return seconds, waits


if __name__ == "__main__":
    main()
