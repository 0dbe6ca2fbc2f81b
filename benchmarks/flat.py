"""Whether the cost of a claim is independent of the number and kind of other rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import asyncpg

from benchmarks.claim_cost import BATCH, WORKER, Cost, cost_of
from benchmarks.reference_table import connected, sql
from forge.core.workers.lanes import BEGINNING
from forge.store import jobs
from forge.store.jobs import LaneCursor
from forge.store.statement import Statement


class Scene(NamedTuple):
    """The table as a claim finds it: a few claimable jobs among many others."""

    name: str
    # type, priority, capability, seconds until due; None: no other jobs
    others: tuple[str, int, str | None, float] | None
    are_completed: bool = False
    # Whether the others are paused; then only the claim is measured, against one without others.
    are_paused: bool = False

    @property
    def bound(self) -> str:
        return "≤ 1.1" if self.are_paused else "≤ 1.3"


SCENES = (
    Scene("pending", ("no_op", 50, None, 0)),
    Scene("completed", ("no_op", 50, None, 0), are_completed=True),
    Scene("of another capability", ("render", 100, "gpu", 0)),
    Scene("of a type this worker lacks", ("unknown", 100, None, 0)),
    Scene("of a paused type", ("paused", 50, None, 0), are_paused=True),
    Scene("due in the future at a higher priority", ("no_op", 100, None, 3600)),
)


async def claim_cost(dsn: str, scene: Scene, others: int) -> Cost:
    """Return the cost of one survey and one claim with `others` other jobs in the table."""
    async with connected(dsn, 1) as (connection,):
        await connection.execute(sql("forge_empty"))
        await connection.execute(sql("forge_register"), WORKER)
        await _set_scene(connection, scene, others)
        statements = await _statements(connection)
        return await cost_of(connection, statements[1:] if scene.are_paused else statements)


async def _set_scene(connection: "asyncpg.Connection[Any]", scene: Scene, others: int) -> None:
    await connection.execute(sql("forge_pause"), "paused" if scene.are_paused else None)
    if scene.others is not None:
        await connection.execute(sql("forge_fill"), others, *scene.others)
    if scene.are_completed:
        await connection.execute(sql("forge_claim_all"))
        await connection.execute(sql("forge_complete_all"))
    await connection.execute(sql("forge_fill"), 1000, "no_op", 50, None, 0.0)
    await connection.execute(sql("forge_vacuum"))
    await connection.execute(sql("checkpoint"))


async def _statements(connection: "asyncpg.Connection[Any]") -> Sequence[Statement[Any]]:
    survey = jobs.survey()
    lanes = survey.read(await connection.fetch(survey.sql))
    lane = next(x for x in lanes if x.job_type == "no_op" and x.due_in <= 0)
    place = LaneCursor(lane.lane, *BEGINNING)
    return survey, jobs.claim([place], BATCH, start=True, worker=WORKER, incarnation=WORKER)
