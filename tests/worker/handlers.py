"""Jobs that a child process can import."""

import os
import time
from pathlib import Path
from typing import Any

import forge
from forge import JobContext, NonRetryable, RateLimited, Snooze, Transient
from tests.faults.kit.process import until


class Wordless(Transient):
    """An error whose __init__ leaves out that of its base."""

    def __init__(self) -> None: ...


@forge.job(isolation="process")
async def where(ctx: JobContext, input: dict) -> dict:
    """Say which process ran it, and what its context knows."""
    return {
        "pid": os.getpid(),
        "job_id": str(ctx.job_id),
        "job_type": ctx.job_type,
        "attempt": ctx.attempt,
        "max_attempts": ctx.max_attempts,
        "tenant_id": ctx.tenant_id,
        "correlation_id": str(ctx.correlation_id),
        "auth": ctx.auth,
        "is_retry": ctx.is_retry,
        "is_last_attempt": ctx.is_last_attempt,
        "input": input,
    }


@forge.job(isolation="process", name="log_in_child")
def log_in_child(ctx: JobContext) -> None:
    """Write a few lines, one of them with a secret."""
    write_log(ctx)


def write_log(ctx: JobContext) -> None:
    """Write lines of all levels and a progress message."""
    ctx.log.debug("looking", at=Path("a.csv"))
    ctx.progress(50, "half way")
    ctx.log.info("imported token=abc123", rows=500, api_key="k-123", name="a.csv")
    ctx.log.warning("slow", seconds=1.5)
    ctx.log.error("gave up", broken=object, big="x" * 10_000)


@forge.job(isolation="process")
def where_plainly(ctx: JobContext, input: dict) -> int:
    """A plain function in a child."""
    return os.getpid()


@forge.job(isolation="process", max_attempts=1, timeout="300ms")
def spin(ctx: JobContext) -> None:
    """Never end, and ignore every request to stop."""
    while True:
        time.sleep(60)


@forge.job(isolation="process", name="linger", max_attempts=1)
def linger(ctx: JobContext) -> None:
    """Say that it began, then never end."""
    ctx.progress(1, f"pid {os.getpid()}")
    while True:
        time.sleep(60)


@forge.job(isolation="process", max_attempts=2)
async def fail_as_told(ctx: JobContext, input: dict) -> None:
    """Fail in the way the input asks for."""
    match input["how"]:
        case "plainly":
            raise ValueError("plainly")
        case "for good":
            raise NonRetryable("for good")
        case "limited":
            raise RateLimited("limited", retry_after="7m")
        case "snooze":
            raise Snooze("1h")
        case "exit":
            raise SystemExit(3)
        case "wordlessly":
            raise Wordless


@forge.job(isolation="process")
async def report(ctx: JobContext, input: dict) -> Any:
    """Report progress and leave a checkpoint on the way."""
    ctx.progress(30, "a third")
    ctx.checkpoint = {"done": 30}
    await ctx.heartbeat()
    ctx.progress(60, "nearly")
    return ctx.checkpoint


@forge.job(isolation="process")
async def step(ctx: JobContext, input: dict) -> None:
    """Report each step twice at once, and go on when a watcher has seen it."""
    for n in range(input["steps"]):
        ctx.progress(n, f"before {n}")
        ctx.progress(n, f"step {n}")
        seen = Path(input["folder"], f"step {n}")
        await until(seen.exists, 20, f"{seen} is there")


@forge.job(isolation="process")
async def unstorable(ctx: JobContext) -> Any:
    """Return what JSON does not have."""
    return {"oops": float("nan")}


@forge.job(isolation="process")
async def write_and_complete(ctx: JobContext, input: dict) -> str:
    """Write a row and complete, in one transaction."""
    async with ctx.complete_in_transaction() as conn:
        await conn.execute("insert into effects values ($1)", input["n"])
    return "returned"


@forge.job(isolation="process")
async def complete_and_linger(ctx: JobContext, input: dict) -> str:
    """Complete, say so, and return once the gate is open."""
    async with ctx.complete_in_transaction():
        pass
    ctx.progress(100, "completed, and not done yet")
    _touch(input["completed"])
    await until(Path(input["gate"]).exists, 20, "the gate is open")
    return "returned"


def _touch(path: str) -> None:
    Path(path).touch()
