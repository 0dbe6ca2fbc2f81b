"""Which workers are there, and which of them live."""

from typing import TYPE_CHECKING, Any

from forge.core.errors import ForgeError
from forge.store import workers

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.handle import JobHandle


async def known_workers(app: "Forge") -> list[dict[str, Any]]:
    """Return the workers with their `state`: alive, draining or dead."""
    database = await (await app.session()).database()
    dead_after = app.config.worker.dead_after.total_seconds()
    return [
        dict(row) | {"state": _state(row, dead_after)}
        for row in await database.run(workers.listed())
    ]


async def living_workers(app: "Forge") -> list[dict[str, Any]]:
    """Return the workers that were heard of lately."""
    return [worker for worker in await known_workers(app) if worker["state"] != "dead"]


async def see_that_one_lives(app: "Forge", request: "JobHandle") -> None:
    """Raise when nobody is there to carry out a request, which waits all the same."""
    if not await living_workers(app):
        raise ForgeError(
            f"no worker is alive to do it; the request {request.id} waits for one: start "
            "`forge worker MODULE:APP`"
        )


def _state(row: Any, dead_after: float) -> str:
    if row["silent_for"] > dead_after:
        return "dead"
    return "draining" if row["draining"] else "alive"
