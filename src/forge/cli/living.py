"""Which workers are there, and which of them live."""

from typing import TYPE_CHECKING, Any

from forge.store import workers

if TYPE_CHECKING:
    from forge.app import Forge


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


def _state(row: Any, dead_after: float) -> str:
    if row["silent_for"] > dead_after:
        return "dead"
    return "draining" if row["draining"] else "alive"
