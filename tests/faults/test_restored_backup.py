"""A restored backup: what ran when it was made runs again, and what waited runs once."""

import subprocess
from pathlib import Path

import asyncpg

from forge import Forge
from forge.store.embedded import Cluster
from tests.faults.apps.handlers import gated, quick
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.worker_processes import Workers


async def test_jobs_of_a_restored_backup_run(
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
    gate: Gate,
    server: Cluster,
    empty_url: str,
    tmp_path: Path,
) -> None:
    running = await app.dispatch(gated, gate.input)
    await workers.start(max_concurrent=1)
    await until_started(history, running.id)
    waiting = await app.dispatch(quick)
    keyed = await app.dispatch(quick, idempotency_key="order-1")

    backup = str(tmp_path / "backup")
    _run(server, "pg_dump", "--format=custom", f"--file={backup}", app.database_url or "")
    _run(server, "pg_restore", "--exit-on-error", f"--dbname={empty_url}", backup)
    gate.open()
    await ledger.until_final([running.id, waiting.id, keyed.id])

    folder = tmp_path / "restored"
    folder.mkdir()
    connection = await asyncpg.connect(empty_url)
    restored = Ledger(connection)
    assert (await restored.job(running.id))["status"] == "running"
    with Workers(empty_url, history, folder) as others:
        await others.start()
        rows = await restored.until_final([running.id, waiting.id, keyed.id])
        async with Forge(app.config, database_url=empty_url) as copy:
            again = await copy.dispatch(quick, idempotency_key="order-1")
    await connection.close()

    assert [row["status"] for row in rows] == ["completed"] * 3
    assert [(row["attempts"], row["crashes"]) for row in rows] == [(1, 1), (1, 0), (1, 0)]
    assert (again.id, again.deduplicated) == (keyed.id, True)


def _run(server: Cluster, program: str, *arguments: str) -> None:
    command = [str(server.binaries.folder / program), *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
