"""Pausing and resuming job types and queues, for every tenant."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue, UnknownPause
from forge.core.new_job import check_uuid, parse_moment
from forge.core.pause import Pause, check_reason, check_target, target_in_words, unknown_names
from forge.definitions.job import JobDefinition
from forge.definitions.schedule import ScheduleDefinition
from forge.jobs.session import Sessions
from forge.store import pauses
from forge.store.borrowed import run_on
from forge.store.ids import new_id
from forge.store.pauses import NewPause
from forge.transports.postgres import MANY

# A type by its name, or by its handler.
PausedType = str | JobDefinition[Any, Any] | ScheduleDefinition[Any]


class Pauses:
    """The pauses of an app's database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def add(
        self,
        type: PausedType | None,
        queue: str | None,
        *,
        duration: timedelta | str | None,
        until: datetime | None,
        reason: str,
        actor: str | None,
    ) -> Pause:
        """Pause a type, a queue, or a type in a queue; it replaces the pause that they have."""
        name = _name(type)
        check_target(name, queue)
        if duration is not None and until is not None:
            raise InvalidValue("a pause has either `for` or `until`, not both; leave one out")
        new = NewPause(
            new_id(),
            name,
            queue,
            parse_moment(until, "until"),
            None if duration is None else parse_duration(duration, what="for"),
            check_reason(reason),
            actor,
        )
        database = await self._sessions.here().database()
        async with database.transaction() as conn:
            run = partial(run_on, conn)
            await run(pauses.lock())
            made = await run(pauses.add(new))
        if made is None:
            raise InvalidValue(f"until {new.until} is in the past; give a later time")
        return made

    async def remove(
        self,
        type: PausedType | None,
        queue: str | None,
        *,
        pause_id: UUID | str | None,
        reason: str | None,
        actor: str | None,
    ) -> Pause:
        """End a pause, by its id or by its type and queue, and wake the workers."""
        name = _name(type)
        known_id = None if pause_id is None else check_uuid(pause_id, "pause_id")
        if (known_id is None) == (name is None and queue is None):
            raise InvalidValue("resume takes either pause_id, or the type and queue of the pause")
        session = self._sessions.here()
        database = await session.database()
        removed = await database.run(pauses.remove(known_id, name, queue, reason, actor))
        if removed is None:
            what = target_in_words(name, queue) if known_id is None else f"pause {known_id}"
            raise UnknownPause(
                f"{what} is not paused" if known_id is None else f"there is no {what}",
                "it may have ended; `forge pauses` lists those in effect",
            )
        session.wake(MANY)
        return removed

    async def warning(self, pause: Pause) -> str | None:
        """Return a warning if nothing that is registered has the names in a pause."""
        known = await self._sessions.run(pauses.known_names())
        return unknown_names(pause.type, pause.queue, known.types, known.queues)

    async def list(self) -> list[Pause]:
        """Return the pauses in effect, oldest first."""
        return await self._sessions.run(pauses.current())


def _name(type: PausedType | None) -> str | None:
    return type if type is None or isinstance(type, str) else type.name
