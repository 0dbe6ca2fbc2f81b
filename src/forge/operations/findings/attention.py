"""Findings that need a person: pauses, drained workers, failing schedules, new dead letters."""

from forge.core.finding import Finding, info, warning
from forge.core.pause import Pause
from forge.operations.findings.work import LiveWorkers
from forge.store import dead_letters, pauses, schedules
from forge.store.connection.database import Database

# Dead letters of the last quarter of an hour are growth, as in the alert rules.
GROWTH_SECONDS = 900.0
# Rows that are counted exactly.
MAX_COUNTED = 1000
# One failed run is retried; after this many in a row a person should look.
FAILED_RUNS = 3
# Schedules that a finding names.
MAX_NAMED = 3


async def check_attention(database: Database, live: LiveWorkers) -> list[Finding]:
    """Look for what is held back on purpose, and for work that keeps failing."""
    return [
        *(_paused(pause) for pause in await database.run(pauses.current())),
        *_drained(live),
        *await _schedules(database),
        *await _dead_letters(database),
    ]


def _paused(pause: Pause) -> Finding:
    until = (
        "until it is resumed" if pause.until is None else f"until {pause.until:%Y-%m-%d %H:%M %Z}"
    )
    by = "" if pause.actor is None else f" by {pause.actor}"
    facts = {
        "pause_id": str(pause.pause_id),
        "job_type": pause.type,
        "queue": pause.queue,
        "until": None if pause.until is None else pause.until.isoformat(),
        "actor": pause.actor,
        "reason": pause.reason,
        "created_at": pause.created_at.isoformat(),
    }
    message = f"{pause.target} is paused{by} {until}: {pause.reason}"
    return info("paused", message, "resume it with `forge resume` when the reason is gone", **facts)


def _drained(live: LiveWorkers) -> list[Finding]:
    return [
        info(
            "drained_worker",
            f"worker {worker.id} ({worker.hostname}, pid {worker.pid}) is drained"
            + (f" by {worker.drained_by}" if worker.drained_by else "")
            + (f": {worker.drain_reason}" if worker.drain_reason else ""),
            f"`forge workers resume {worker.id}` has it claim jobs again",
            worker_id=str(worker.id),
            actor=worker.drained_by,
            reason=worker.drain_reason,
            since=worker.drained_at.isoformat(),
        )
        for worker in live
        if worker.drained_at is not None
    ]


async def _schedules(database: Database) -> list[Finding]:
    count, named = await database.run(schedules.failing(FAILED_RUNS, MAX_COUNTED + 1, MAX_NAMED))
    if not count:
        return []
    which = ", ".join(f"{row['type']} {row['key']}".rstrip() for row in named)
    more = ", …" if count > len(named) else ""
    return [
        warning(
            "failing_schedules",
            f"{_number(count)} {_noun(count, 'schedule')} failed {FAILED_RUNS} times in a row or "
            f"more: {which}{more}",
            "`forge schedules show` has the error of the last run",
            count=count,
            schedules=named,
        )
    ]


async def _dead_letters(database: Database) -> list[Finding]:
    by_type = await database.run(dead_letters.arrived(GROWTH_SECONDS, MAX_COUNTED + 1))
    count = sum(by_type.values())
    if not count:
        return []
    return [
        warning(
            "dead_letters_grow",
            f"{_number(count)} new {_noun(count, 'dead letter')} in the last "
            f"{GROWTH_SECONDS / 60:.0f} minutes, of type {', '.join(by_type)}",
            "`forge dlq groups` shows their causes",
            count=count,
            by_type=by_type,
        )
    ]


def _number(count: int) -> str:
    return f"{count:,}" if count <= MAX_COUNTED else f"more than {MAX_COUNTED:,}"


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
