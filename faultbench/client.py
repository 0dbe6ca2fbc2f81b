"""The bench's own client: plain SQL over asyncpg, without the engine's code."""

import asyncio
import itertools
import json
import random
import time
from collections.abc import Sequence
from typing import Any

import asyncpg

from faultbench.checker import FINAL, Move, Row
from faultbench.history import History, Kind
from faultbench.process import until

# What the bench adds to a database: an independent record of what the database accepted.
SET_UP = """
create table faultbench_effects (mark text not null, lease bigint not null);
create table faultbench_moves (
    job uuid not null, lease bigint not null, was text not null, becomes text not null,
    at timestamptz not null default clock_timestamp()
);
create function faultbench_move() returns trigger language plpgsql as $$
begin
    insert into faultbench_moves (job, lease, was, becomes)
    values (new.id, new.lease, old.status, new.status);
    return null;
end $$;
create trigger faultbench_moves after update on forge_jobs for each row
when (old.status is distinct from new.status or old.lease is distinct from new.lease)
execute function faultbench_move();
"""
ROWS = (
    "select id, input ->> 'mark' as mark, status, lease from forge_jobs "
    "where not starts_with(job_type, 'forge.')"
)
MOVES = (
    "select job, lease, was, becomes, extract(epoch from at)::float8 as at from faultbench_moves"
)
# Errors that a dispatcher may get instead of an acknowledgement during a fault.
LOST = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TimeoutError,
)


class Client:
    """Dispatches jobs, records acknowledgements and reads the state of the database."""

    def __init__(self, url: str, history: History, *, name: str = "") -> None:
        self.url = url
        self.history = history
        self._connection: asyncpg.Connection | None = None
        self._lock = asyncio.Lock()
        # Makes marks unique across the clients of a run.
        self._name = name
        self._numbers = itertools.count(1)

    async def dispatch(
        self, job_type: str, *, key: bool = False, options: str = "", **input: Any
    ) -> str:
        """Dispatch a job once and return its mark; raise if it was not acknowledged."""
        mark = f"{job_type}-{self._name}{next(self._numbers)}"
        self.history.record(Kind.DISPATCHING, mark=mark)
        await self._dispatch(mark, job_type, key, options, input)
        return mark

    async def dispatch_until_acknowledged(
        self, job_type: str, *, until_time: float, **input: Any
    ) -> str | None:
        """Repeat a dispatch with an idempotency key until it is acknowledged."""
        mark = f"{job_type}-{self._name}{next(self._numbers)}"
        self.history.record(Kind.DISPATCHING, mark=mark)
        while time.monotonic() < until_time:
            try:
                await self._dispatch(mark, job_type, True, "", input)
                return mark
            except LOST:
                await asyncio.sleep(0.05)
        return None

    async def _dispatch(
        self, mark: str, job_type: str, key: bool, options: str, input: dict[str, Any]
    ) -> None:
        known = f", idempotency_key => '{mark}'" if key else ""
        job = await self.value(
            f"select forge_dispatch($1, $2::jsonb, notify => true{known}{options})",
            job_type,
            json.dumps({"mark": mark, **input}),
        )
        self.history.record(Kind.ACKNOWLEDGED, mark=mark, job=job)

    async def dispatch_many(self, count: int, job_type: str = "work", **input: Any) -> list[str]:
        return [await self.dispatch(job_type, **input) for _ in range(count)]

    async def load(
        self,
        seconds: float,
        *,
        rate: float,
        rng: random.Random,
        kinds: Sequence[str] = ("work",),
        longest: float = 0.2,
        enough: asyncio.Event | None = None,
    ) -> None:
        """Dispatch at a steady rate through all faults; half of the jobs have a key.

        With `enough`, continue after `seconds` until the event is set.
        """
        began = time.monotonic()
        for number in itertools.count():
            if number >= seconds * rate and (enough is None or enough.is_set()):
                break
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            kind, seconds_of_work = rng.choice(kinds), rng.uniform(0, longest)
            if rng.random() < 0.5:
                give_up = time.monotonic() + 120
                await self.dispatch_until_acknowledged(
                    kind, until_time=give_up, seconds=seconds_of_work
                )
                continue
            try:
                await self.dispatch(kind, seconds=seconds_of_work)
            except LOST:
                # Not acknowledged: the job may exist or not; do not dispatch it again.
                continue

    async def rows(self) -> list[Row]:
        return [
            Row(str(row["id"]), row["mark"] or "", row["status"], row["lease"])
            for row in await self.fetch(ROWS)
        ]

    async def moves(self) -> list[Move]:
        offset = time.time() - time.monotonic()
        return [
            Move(str(row["job"]), row["lease"], row["was"], row["becomes"], row["at"] - offset)
            for row in await self.fetch(MOVES)
        ]

    async def job(self, mark: str) -> asyncpg.Record:
        found = await self.fetch("select * from forge_jobs where input ->> 'mark' = $1", mark)
        if not found:
            raise LookupError(f"no job has the mark {mark}")
        return found[0]

    async def until_known(self, job_type: str, timeout: float = 30) -> None:
        """Wait until a worker has registered this type."""
        known = "select exists (select from forge_job_types where name = $1)"
        await until(lambda: self.value(known, job_type), timeout, f"{job_type} is registered")

    async def until_final(self, timeout: float = 60) -> None:
        """Wait until every job in the database is final."""
        waiting = (
            "select count(*) from forge_jobs where not starts_with(job_type, 'forge.') "
            f"and status not in ({', '.join(repr(status) for status in sorted(FINAL))})"
        )

        async def none_left() -> bool:
            try:
                return bool(await self.value(waiting) == 0)
            except LOST:
                return False

        await until(none_left, timeout, "every job has ended")

    async def until_status(self, mark: str, *statuses: str, timeout: float = 30) -> asyncpg.Record:
        async def has_status() -> Any:
            try:
                row = await self.job(mark)
            except LOST:
                return None
            return row if row["status"] in statuses else None

        return await until(has_status, timeout, f"{mark} is {' or '.join(statuses)}")

    async def value(self, sql: str, *args: Any) -> Any:
        async with self._lock:
            return await (await self._open()).fetchval(sql, *args, timeout=30)

    async def fetch(self, sql: str, *args: Any) -> list[asyncpg.Record]:
        async with self._lock:
            return list(await (await self._open()).fetch(sql, *args, timeout=60))

    async def execute(self, sql: str) -> None:
        async with self._lock:
            await (await self._open()).execute(sql, timeout=60)

    async def connect(self, **settings: str) -> asyncpg.Connection:
        """Open a separate connection for the caller."""
        return await asyncpg.connect(
            self.url,
            timeout=5,
            server_settings={"application_name": "faultbench", **settings},
            statement_cache_size=0,
        )

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    async def _open(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self.connect()
        return self._connection
