"""An attempt whose worker was killed keeps its lines, and the timeline shows what followed."""

from __future__ import annotations

from forge import Forge
from forge.core.timeline import EntryKind
from tests.faults.apps.handlers import logged_and_gated
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, until_started
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import Workers


async def test_a_killed_attempt_keeps_its_lines(
    app: Forge, workers: Workers, history: History, gate: Gate
) -> None:
    handle = await app.dispatch(logged_and_gated, gate.input)
    first = await workers.start()
    await until_started(history, handle.id)

    async def is_logged() -> bool:
        entries = (await handle.timeline()).items
        return any(entry.kind is EntryKind.LOG for entry in entries)

    await until(is_logged, 30, "the line is stored while the handler runs")
    first.sigkill()
    await workers.start()
    await until_started(history, handle.id, lease=2)
    gate.open()
    assert await handle.result(timeout=60) == 2

    entries = (await handle.timeline()).items

    begin = [EntryKind.CLAIMED, EntryKind.STARTED, EntryKind.PROGRESS, EntryKind.LOG]
    end = [EntryKind.COMPLETED, EntryKind.ENDED]
    kinds = [EntryKind.DISPATCHED, *begin, EntryKind.CRASHED, *begin, *end]
    assert [entry.kind for entry in entries] == kinds
    lines = [entry for entry in entries if entry.kind is EntryKind.LOG]
    assert [(line.lease, line.detail["fields"]) for line in lines] == [
        (1, {"lease": 1}),
        (2, {"lease": 2}),
    ]
    assert entries[5].worker_id == first.id
