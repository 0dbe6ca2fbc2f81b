"""Pauses under load: nothing that is paused starts from a second after the answer on."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

from forge import Forge
from tests.faults.apps.mixed import reporting, short
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import Workers

WORKERS = 4
# Seconds after the answer from which nothing may start, and for which that is observed.
SEEN_WITHIN, OBSERVED = 1.0, 0.7
QUEUE = "held"
TARGETS: tuple[dict[str, Any], ...] = (
    {"type": "short"},
    {"queue": QUEUE},
    {"type": "short", "queue": QUEUE},
)
# Jobs of each type that wait at least when a round begins, and that are added if fewer do.
FULL = 1500
# Another type goes on, so that the workers stay busy.
FREE, HELD = "reporting", "short"
WAITING = "select count(*) from forge_jobs where job_type = $1 and status in ('pending', 'retry')"
STARTED_AFTER = (
    "select exists (select from forge_jobs where job_type = $1 and started_at > "
    "$2::timestamptz + make_interval(secs => $3))"
)


class Pause(NamedTuple):
    """From when on nothing may start, and until when; monotonic times."""

    begins: float
    ends: float


@pytest.mark.timeout(300)
async def test_nothing_starts_a_second_after_a_pause_was_acknowledged(
    app: Forge, workers: Workers, ledger: Ledger, history: History
) -> None:
    await _check(4, app, workers, ledger, history)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_nothing_starts_a_second_after_any_of_100_pauses(
    app: Forge, workers: Workers, ledger: Ledger, history: History
) -> None:
    await _check(100, app, workers, ledger, history)


async def _check(
    rounds: int, app: Forge, workers: Workers, ledger: Ledger, history: History
) -> None:
    app.register(short, reporting)
    for _ in range(WORKERS):
        await workers.start(max_concurrent=4)

    pauses = [await _pause(number, app, ledger) for number in range(rounds)]

    held = {str(job_id) for job_id in await _ids(ledger, HELD)}
    starts = [event for event in history.events() if event.kind is Kind.STARTED]
    of_held = [event for event in starts if event.job in held]
    late = [
        (number, event.monotonic - pause.begins)
        for number, pause in enumerate(pauses)
        for event in of_held
        if pause.begins < event.monotonic < pause.ends
    ]
    assert not late, f"{len(late)} jobs started during a pause: {late[:20]}"
    # The check is about something: every worker ran what was paused, and was busy meanwhile.
    assert len({event.pid for event in of_held}) == WORKERS
    busy = {event.pid for event in starts for p in pauses if p.begins < event.monotonic < p.ends}
    assert len(busy) == WORKERS
    print(f"{rounds} pauses, {len(of_held)} held and {len(starts)} starts in all")


async def _pause(number: int, app: Forge, ledger: Ledger) -> Pause:
    """Pause and resume once, while both types have work; return when nothing may start."""
    await _fill(app, ledger)
    resumed_at = await ledger.connection.fetchval("select now()")
    await _until_started(ledger, HELD, resumed_at, 0, "what is not paused runs")
    target = TARGETS[number % len(TARGETS)]

    await app.pause(**target, reason="under load")
    begins = time.monotonic() + SEEN_WITHIN
    acknowledged = await ledger.connection.fetchval("select now()")

    await _until_started(ledger, FREE, acknowledged, SEEN_WITHIN + OBSERVED, "the rest goes on")
    ends = time.monotonic()
    await app.resume(**target)
    return Pause(begins, ends)


async def _fill(app: Forge, ledger: Ledger) -> None:
    for definition, queue in ((short, QUEUE), (reporting, "default")):
        if await ledger.connection.fetchval(WAITING, definition.name) < FULL:
            inputs = ({"seconds": 0.02} for _ in range(FULL))
            await app.dispatch_many(definition, inputs, queue=queue)


async def _until_started(
    ledger: Ledger, name: str, since: object, seconds: float, what: str
) -> None:
    async def has_started() -> bool:
        return bool(await ledger.connection.fetchval(STARTED_AFTER, name, since, seconds))

    await until(has_started, 60, what)


async def _ids(ledger: Ledger, name: str) -> list[object]:
    rows = await ledger.connection.fetch("select id from forge_jobs where job_type = $1", name)
    return [row["id"] for row in rows]
