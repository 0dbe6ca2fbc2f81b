"""Writes that may not be lost: asked for until the database answers."""

import asyncio
import random
from collections.abc import Callable
from typing import Protocol, TypeVar

from forge.core.errors import DatabaseUnavailable, SchemaMissing
from forge.core.event import Events
from forge.store.statement import Statement

T = TypeVar("T")


class Runs(Protocol):
    """Whatever runs statements."""

    async def run(self, statement: Statement[T]) -> T:
        """Run one statement."""


async def insist(
    link: Runs, events: Events, statement: Callable[[], Statement[T]]
) -> tuple[T, bool]:
    """Ask until the database answers; say with its answer whether it took more than one try."""
    pause = 0.05
    is_again = False
    while True:
        try:
            return await link.run(statement()), is_again
        except (DatabaseUnavailable, SchemaMissing) as error:
            events.notice("warning", "acks wait for the database", error=str(error))
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 5)
            is_again = True
