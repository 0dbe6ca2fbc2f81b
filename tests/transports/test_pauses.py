"""Pauses where jobs arrive by message: claims by id obey, and messages are sent again on resume."""

from collections.abc import Callable
from typing import Any

import pytest

from forge import Forge, JobContext
from forge.transports.sqs.sender import Sweeper
from tests.apps import Work
from tests.faults.kit.process import until
from tests.store.placing import Psql
from tests.transports.conftest import waiting


@pytest.mark.parametrize("is_sent", [True, False])
async def test_paused_jobs_leave_the_queue_and_return_on_resume(
    make_sqs_app: Callable[..., Forge],
    work: Work,
    sqs: Any,
    queue: str,
    psql: "Psql[Any]",
    monkeypatch: pytest.MonkeyPatch,
    is_sent: bool,
) -> None:
    monkeypatch.setattr(Sweeper, "interval", 0.5)
    monkeypatch.setattr(Sweeper, "due_for", 0.1)
    # Nothing but the sweeper sends a message again.
    app = make_sqs_app(sqs={"resend_after": "1h"})

    @app.job
    async def export(ctx: JobContext) -> str:
        return "ran"

    @app.job
    async def mail(ctx: JobContext) -> str:
        return "ran"

    await app.migrate()
    if not is_sent:
        await app.pause("export", reason="broken")
    handles = [await app.dispatch("export") for _ in range(3)]
    if is_sent:
        await _send_all(app, psql, sqs, queue)
        await app.pause("export", reason="broken")
    await work(app)
    assert await (await app.dispatch("mail")).result(20) == "ran"

    async def is_empty() -> bool:
        rows = await psql.fetchval("select count(*) from forge_outbox")
        return bool(rows == 0 and waiting(sqs, queue) == 0)

    await until(is_empty, 20, "no message and no row of a paused job is left")
    assert [(await handle.get()).status for handle in handles] == ["pending"] * 3

    await app.resume("export")

    for handle in handles:
        assert await handle.result(30) == "ran"
        assert (await handle.get()).attempts == 1


async def _send_all(app: Forge, psql: "Psql[Any]", sqs: Any, queue: str) -> None:
    """Put messages into the queue as a worker would, and leave their rows in the outbox."""
    for row in await psql.fetch("select job_id from forge_outbox"):
        sqs.send_message(QueueUrl=queue, MessageBody=f'{{"job_id": "{row["job_id"]}"}}')
    await psql.execute("update forge_outbox set send_at = now() + interval '1 hour', sends = 1")
