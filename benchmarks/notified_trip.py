"""How long a job takes from its dispatch over a notification to its claim."""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from uuid import UUID

from uuid_utils.compat import uuid7

from benchmarks.reference_table import (
    INPUT,
    JOB_TYPE,
    OUTPUT,
    TABLE,
    Connection,
    Statement,
    sql,
)


class NotifiedTrip:
    """One trip from an insert on one connection over a listener to a claim on a third."""

    def __init__(self, insert: Statement, claim: Statement, finish: Statement) -> None:
        self._insert = insert
        self._claim = claim
        self._finish = finish
        self._worker = uuid7()
        self._heard = asyncio.Event()

    @classmethod
    async def prepared(
        cls, dispatcher: Connection, listener: Connection, claimer: Connection
    ) -> "NotifiedTrip":
        trip = cls(
            await dispatcher.prepare(sql("insert_and_notify")),
            await claimer.prepare(sql("claim", batch=1)),
            await claimer.prepare(sql("finish")),
        )
        await listener.add_listener(TABLE, trip._hear)
        return trip

    async def milliseconds(self) -> float:
        self._heard.clear()
        dispatched = uuid7()
        claiming = asyncio.create_task(self._claimed_when_heard())
        started = perf_counter()
        await self._insert.fetch(dispatched, JOB_TYPE, INPUT)
        claimed, ended = await claiming
        if claimed != [dispatched]:
            raise RuntimeError(
                f"The listener claimed {claimed} and not the dispatched job; "
                f"see that nothing else uses the table {TABLE} and measure again"
            )
        await self._finish.fetch(claimed, [OUTPUT])
        return (ended - started) * 1000

    async def _claimed_when_heard(self) -> tuple[Sequence[UUID], float]:
        await self._heard.wait()
        claimed = await self._claim.fetch(self._worker)
        return [job["id"] for job in claimed], perf_counter()

    def _hear(self, *_notification: object) -> None:
        self._heard.set()
