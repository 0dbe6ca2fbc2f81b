"""Schedules under wrong clocks, dying workers and outages."""

import asyncio
import shutil
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

from faultbench.client import Client
from faultbench.history import Kind
from faultbench.outcome import CannotRun
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage
from forge import Config, Forge

# Shifts the wall clock of a process and keeps its monotonic clock.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) {
    const char *text = getenv("FAULTBENCH_SHIFT");
    return text ? atol(text) : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (!code && clock == CLOCK_REALTIME) now->tv_sec += shift();
    return code;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    int code = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec; now->tv_usec = precise.tv_nsec / 1000;
    return code;
}
time_t time(time_t *into) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (into) *into = precise.tv_sec;
    return precise.tv_sec;
}
"""


async def _shim(stage: Stage) -> Path:
    if shutil.which("cc") is None:
        raise CannotRun("shifting a process's clock needs a C compiler (cc)")
    source, library = stage.folder / "shift.c", stage.folder / "shift.so"
    source.write_text(SHIM)
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    if await asyncio.to_thread(subprocess.call, command):
        raise CannotRun("the library that shifts clocks does not compile on this machine")
    return library


@fault(28, "workers' clocks are an hour off", "nothing runs early, late or twice", runs=2)
async def wrong_clocks(stage: Stage) -> None:
    library = await _shim(stage)
    client = await stage.client()
    for shift in (3600, -3600):
        env = {"LD_PRELOAD": str(library), "FAULTBENCH_SHIFT": str(shift)}
        worker = await stage.worker(client, env=env)
        stage.require(worker.is_alive, "a worker exited")
    await _ensure(client, "clock", every="2s")
    delays: dict[str, float] = {}
    for _ in range(30):
        delay = stage.rng.uniform(0, 8)
        mark = await client.dispatch("work", options=f", delay => '{delay} seconds'")
        delays[mark] = time.monotonic() + delay
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    off = {event.mark: event.monotonic - delays[event.mark] for event in stage.starts()}
    stage.require(min(off.values()) > -0.1, f"started {-min(off.values()):.1f} s early")
    stage.recovered(max(off.values()), within=5)
    await until(lambda: len(_ticks(stage, "clock")) >= 5, 30, "the schedule ran")
    await _check_ticks(stage, "clock", every=2)
    stage.note("clocks shifted by +1 h and -1 h with a preloaded library")


@fault(29, "many schedulers, one killed every few seconds", "one run per tick")
async def flapping_schedulers(stage: Stage) -> None:
    client = await stage.client()
    workers = [await stage.worker(client) for _ in range(4)]
    await _ensure(client, "flap", every="1s", missed="all")
    kills = 0
    end = time.monotonic() + 40
    while time.monotonic() < end:
        await asyncio.sleep(stage.rng.uniform(2, 4))
        victim = workers.pop(stage.rng.randrange(len(workers)))
        victim.kill()
        kills += 1
        workers.append(await stage.worker(client))
    # Other workers catch up on the ticks that a killed worker had claimed.
    await until(lambda: _is_up_to_date(client, "flap"), 40, "missed ticks were caught up")
    await client.execute("update forge_schedules set enabled = false")
    twice = await _check_ticks(stage, "flap", every=1, kills=kills)
    stage.note(
        f"{len(_ticks(stage, 'flap'))} ticks, {kills} kills, {twice} ticks repeated after a kill"
    )


@fault(31, "no scheduler for an hour", "missed ticks are handled as each policy says")
async def no_scheduler_for_an_hour(stage: Stage) -> None:
    client = await stage.client()
    # The last tick is five minutes ago, so that no policy treats it as due now.
    first = datetime.now(UTC) - timedelta(minutes=65)
    for policy in ("once", "skip", "all"):
        await _ensure(client, policy, every="10m", missed=policy, next_run_at=first)
    await stage.worker(client)
    began = time.monotonic()
    for policy in ("once", "skip", "all"):
        await until(partial(_is_up_to_date, client, policy), 60, f"{policy} is up to date")
    stage.recovered(time.monotonic() - began)
    runs = {policy: len(_ticks(stage, policy)) for policy in ("once", "skip", "all")}
    stage.require(runs == {"once": 1, "skip": 0, "all": 7}, f"runs by policy: {runs}")
    stage.note(f"runs for 7 missed ticks: {runs}")


async def _ensure(client: Client, key: str, **rule: object) -> None:
    async with Forge(Config(), database_url=client.url) as app:
        await app.schedules.ensure("ticking", key, {}, **rule)  # type: ignore[arg-type]


async def _is_up_to_date(client: Client, key: str) -> bool:
    return bool(
        await client.value(
            "select next_run_at > now() - interval '2 seconds' from forge_schedules where key = $1",
            key,
        )
    )


def _ticks(stage: Stage, key: str) -> Counter[str]:
    return Counter(
        event.detail["tick"]
        for event in stage.history.events(Kind.TICK)
        if event.detail["key"] == key
    )


async def _check_ticks(stage: Stage, key: str, *, every: float, kills: int = 0) -> int:
    """Check that ticks follow the rule without gaps, each once; a kill may repeat one."""
    found = _ticks(stage, key)
    times = sorted(datetime.fromisoformat(tick).timestamp() for tick in found)
    gaps = {round(b - a, 3) for a, b in pairwise(times)}
    stage.require(gaps <= {every}, f"steps between ticks: {sorted(gaps)}")
    twice = sum(count - 1 for count in found.values())
    stage.require(twice <= kills, f"{twice} ticks ran again, {kills} workers were killed")
    return twice
