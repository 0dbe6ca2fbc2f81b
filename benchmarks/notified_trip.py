"""The time of a job from its dispatch through a notification to its claim."""

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
    """One trip from an insert on one connection through a listener to a claim on a third."""

    def __init__(self, insert: Statement, claim: Statement, finish: Statement) -> None:
        self._insert = insert
        self._claim = claim
        self._finish = finish
        self._worker = uuid7()
        self._notified = asyncio.Event()

    @classmethod
    async def prepared(
        cls, dispatcher: Connection, listener: Connection, claimer: Connection
    ) -> "NotifiedTrip":
        trip = cls(
            await dispatcher.prepare(sql("insert_and_notify")),
            await claimer.prepare(sql("claim", batch=1)),
            await claimer.prepare(sql("finish")),
        )
        await listener.add_listener(TABLE, trip._on_notification)
        return trip

    async def milliseconds(self) -> float:
        self._notified.clear()
        dispatched = uuid7()
        claiming = asyncio.create_task(self._claim_when_notified())
        started = perf_counter()
        await self._insert.fetch(dispatched, JOB_TYPE, INPUT)
        claimed, ended = await claiming
        if claimed != [dispatched]:
            raise RuntimeError(
                f"The listener claimed {claimed} instead of the dispatched job; "
                f"make sure that nothing else uses the table {TABLE} and measure again"
            )
        await self._finish.fetch(claimed, [OUTPUT])
        return (ended - started) * 1000

    async def _claim_when_notified(self) -> tuple[Sequence[UUID], float]:
        await self._notified.wait()
        claimed = await self._claim.fetch(self._worker)
        return [job["id"] for job in claimed], perf_counter()

    def _on_notification(self, *_notification: object) -> None:
        self._notified.set()
