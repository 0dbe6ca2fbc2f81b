"""Isolated handlers that start processes of their own."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forge
from forge import JobContext

PATIENCE = 300


@forge.job(isolation="process", max_attempts=1)
def fork_and_hang(ctx: JobContext, input: dict[str, Any]) -> None:
    """Wait for a forked process that never ends."""
    Path(input["pids"]).write_text(f"{os.getpid()} {_start(input['how']).pid}")
    time.sleep(PATIENCE)


@forge.job(isolation="process", max_attempts=1, timeout="1s")
def fork_for_too_long(ctx: JobContext, input: dict[str, Any]) -> None:
    """The same, and not for long."""
    Path(input["pids"]).write_text(f"{os.getpid()} {_start(input['how']).pid}")
    time.sleep(PATIENCE)


@forge.job(isolation="process", max_attempts=1)
def fork_and_die(ctx: JobContext, input: dict[str, Any]) -> None:
    """Die and leave a process behind that never ends."""
    Path(input["pids"]).write_text(f"{os.getpid()} {_start(input['how']).pid}")
    os._exit(3)


@forge.job(isolation="process", max_attempts=1)
def terminate_a_pool(ctx: JobContext) -> str:
    """Use a pool as the documentation of multiprocessing shows: leaving it terminates it."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.apply(os.getpid)
        pool.apply_async(time.sleep, (PATIENCE,))
    started = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({PATIENCE})"])
    started.terminate()
    return f"ended with {started.wait()}"


@forge.job(isolation="process", max_attempts=1)
def return_twice(ctx: JobContext) -> str:
    """Fork and return in both processes."""
    forked = os.fork()
    if forked:
        os.waitpid(forked, 0)
    return "the parent" if forked else "the copy"


def _start(how: str) -> Any:
    if how == "fork":
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(PATIENCE,))
        process.start()
        return process
    return subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({PATIENCE})"])
