"""Writes that may not be lost: asked for until the database answers."""

import asyncio
import random
from collections.abc import Callable
from typing import TypeVar

from forge.core.errors import DatabaseUnavailable, SchemaMissing
from forge.core.event import Events
from forge.store.link import Link
from forge.store.statement import Statement

T = TypeVar("T")


async def insist(
    link: Link, events: Events, statement: Callable[[], Statement[T]]
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
