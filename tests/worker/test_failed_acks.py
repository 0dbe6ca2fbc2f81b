"""Writes of outcomes that fail in a way that was not foreseen."""

from typing import Any

import pytest

from forge import JobContext
from forge.core.events import AttemptRefused, Event, WorkerNotice
from forge.store.connection.link import Link
from forge.worker import batch_acker
from forge.worker.batch_acker import BatchAcker
from tests.apps import MakeApp, working
from tests.faults.kit.process import until


class Faulty:
    """A link with a bug: one statement fails, before or after the database has run it."""

    def __init__(self, link: Link, *, is_late: bool) -> None:
        self._link = link
        self._is_late = is_late
        self._has_failed = False

    async def run(self, statement: Any) -> Any:
        fails, self._has_failed = not self._has_failed, True
        if fails and not self._is_late:
            raise RuntimeError("a bug")
        answer = await self._link.run(statement)
        if fails:
            raise RuntimeError("a bug")
        return answer


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("is_plain", [False, True])
async def test_an_unexpected_error_is_told_and_loses_no_outcome(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, *, is_late: bool, is_plain: bool
) -> None:
    monkeypatch.setattr(batch_acker, "RETRY_PAUSE", 0.01)
    app, events = make_app(), list[Event]()

    @app.job
    async def finish(ctx: JobContext) -> str:
        if not is_plain:
            ctx.progress(50)  # written together with the end, by another path than plain ones
        return "done"

    app.events.listeners.append(events.append)
    async with working(app) as worker:
        _spoil(worker.jobs.acker, is_late=is_late)
        handle = await finish.dispatch(None)
        assert await handle.result(20) == "done"
        job = await handle.get()

    assert (job.status, job.attempts, job.lease) == ("completed", 1, 1)
    notices = [e for e in events if isinstance(e, WorkerNotice) and e.level == "error"]
    assert [(n.message, n.detail) for n in notices] == [
        ("acks failed, retrying", {"error": "RuntimeError('a bug')"})
    ]
    assert not [e for e in events if isinstance(e, AttemptRefused)]


@pytest.mark.parametrize("is_late", [False, True])
async def test_an_unexpected_error_loses_no_end_of_a_run(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(batch_acker, "RETRY_PAUSE", 0.01)
    app, events = make_app(), list[Event]()

    @app.schedule("tick")
    async def tick(ctx: Any) -> None: ...

    app.events.listeners.append(events.append)
    async with working(app) as worker:
        _, schedules = worker.sources
        _spoil(schedules.acker, is_late=is_late)
        await app.schedules.ensure("tick")

        async def has_run() -> Any:
            row = await app.schedules.get("tick")
            return row if row.last_run_at is not None else None

        row = await until(has_run, 20, "it has run")

    assert [run["outcome"] for run in row.recent_runs] == ["completed"]
    notices = [e for e in events if isinstance(e, WorkerNotice) and e.level == "error"]
    assert [n.message for n in notices] == ["acks of schedule runs failed, retrying"]
    assert not [e for e in events if isinstance(e, AttemptRefused)]


def _spoil(acker: BatchAcker, *, is_late: bool) -> None:
    links: list[Any] = acker._idle
    links[:] = [Faulty(links[0], is_late=is_late)]
