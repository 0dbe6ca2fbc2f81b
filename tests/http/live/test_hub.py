"""The hub: one read per batch of changes, and every watcher gets exactly its jobs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import ForgeError, UnknownJob
from forge.jobs import hub
from forge.jobs.hub import Hub, HubClosed
from forge.store import jobs, notify
from forge.store.connection.database import Database
from forge.store.connection.link import SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.statement import Row
from tests.faults.kit.process import until

READS = """
    select coalesce(sum(calls), 0)::int as calls, coalesce(sum(rows), 0)::int as rows
    from pg_stat_statements where query like '%as watched_id%' and query not like '%pg_stat%'
    and dbid = (select oid from pg_database where datname = current_database())
"""


class Board:
    """The messages of each job, in order."""

    def __init__(self) -> None:
        self.received: dict[UUID, list[str]] = {}
        self.errors: list[ForgeError] = []

    def notify(self, job_id: UUID, news: Any) -> None:
        if isinstance(news, ForgeError):
            self.errors.append(news)
        else:
            self.received.setdefault(job_id, []).append(news)

    def has(self, ids: Sequence[UUID], message: str) -> bool:
        return all(self.received.get(job_id, ["nothing"])[-1] == message for job_id in ids)


@pytest.fixture
async def watching(database: Database) -> AsyncIterator[Hub[str]]:
    """A hub that sends the progress messages of jobs."""
    opened: Hub[str] = Hub(database, jobs.changed_view, _message)
    yield opened
    await opened.close()


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable polling, so that only notifications make the hub read."""
    monkeypatch.setattr(hub, "POLL", 1000)
    monkeypatch.setattr(hub, "POLL_WITHOUT_LISTENER", 1000)


@pytest.mark.usefixtures("seldom")
async def test_a_batch_of_changes_is_one_read_however_many_are_watched(
    watching: Hub[str], psql: Any, database: Database
) -> None:
    await psql.execute("create extension pg_stat_statements")
    board, ids = Board(), await dispatched(psql, 1000)
    for job_id in ids:
        watching.watch(job_id, board.notify)
    await until(lambda: board.has(ids, ""), 20, "all are notified of the state")
    await heard(watching, board, psql, database)

    await psql.execute("select pg_stat_statements_reset()")
    await changed(psql, ids, "all")
    await database.run(notify.send(notify.CHANGES, notify.changes_payload(set(ids))))
    await until(lambda: board.has(ids, "all"), 20, "all are notified")
    assert dict(await psql.fetchrow(READS)) == {"calls": 1, "rows": 1000}

    await psql.execute("select pg_stat_statements_reset()")
    await changed(psql, ids[:100], "some")
    await database.run(notify.send(notify.CHANGES, notify.changes_payload(set(ids[:100]))))
    await until(lambda: board.has(ids[:100], "some"), 20, "those are notified")
    assert dict(await psql.fetchrow(READS)) == {"calls": 1, "rows": 100}
    assert board.has(ids[100:], "all")


@pytest.mark.usefixtures("seldom")
async def test_unwatched_jobs_are_not_read(
    watching: Hub[str], psql: Any, database: Database
) -> None:
    await psql.execute("create extension pg_stat_statements")
    board, (mine, other) = Board(), await dispatched(psql, 2)
    watching.watch(mine, board.notify)
    await heard(watching, board, psql, database)
    await psql.execute("select pg_stat_statements_reset()")

    await database.run(notify.send(notify.CHANGES, other.hex))
    await changed(psql, [mine], "now")
    await database.run(notify.send(notify.CHANGES, mine.hex))
    await until(lambda: board.has([mine], "now"), 10, "mine is notified")

    assert dict(await psql.fetchrow(READS)) == {"calls": 1, "rows": 1}


async def test_new_watcher_gets_the_state_and_others_nothing(watching: Hub[str], psql: Any) -> None:
    first, second, (job_id,) = Board(), Board(), await dispatched(psql, 1)
    watching.watch(job_id, first.notify)
    await until(lambda: first.has([job_id], ""), 10, "the first is notified")

    watching.watch(job_id, second.notify)
    await until(lambda: second.has([job_id], ""), 10, "the second is notified")
    await changed(psql, [job_id], "changed")
    await until(lambda: first.has([job_id], "changed"), 10, "the first is notified of the change")
    await until(lambda: second.has([job_id], "changed"), 10, "the second is notified of the change")

    assert first.received == second.received == {job_id: ["", "changed"]}


async def test_unannounced_change_is_found(watching: Hub[str], psql: Any) -> None:
    board, ids = Board(), await dispatched(psql, 3)
    for job_id in ids:
        watching.watch(job_id, board.notify)
    await until(lambda: board.has(ids, ""), 10, "all are notified")

    await changed(psql, ids, "by hand")
    await until(lambda: board.has(ids, "by hand"), 10, "all are notified of the change")

    await psql.execute("delete from forge_jobs where id = $1", ids[0])
    await until(lambda: board.errors, 10, "it is notified of the deletion")
    assert isinstance(board.errors[0], UnknownJob)


async def test_announcements_do_not_hide_unannounced_changes(
    watching: Hub[str], psql: Any, database: Database
) -> None:
    board, (busy, quiet) = Board(), await dispatched(psql, 2)
    watching.watch(busy, board.notify)
    watching.watch(quiet, board.notify)
    await until(lambda: board.has([busy, quiet], ""), 10, "both are notified")
    await changed(psql, [quiet], "by hand")

    async def announce_again() -> bool:
        await database.run(notify.send(notify.CHANGES, busy.hex))
        return board.has([quiet], "by hand")

    await until(announce_again, 10, "the quiet one is notified")


async def test_hub_polls_behind_a_pooler(database_url: str, psql: Any) -> None:
    database = Database(database_url, session=SessionOptions(Callers(), pooler=True))
    pooled: Hub[str] = Hub(database, jobs.changed_view, _message)
    board, (job_id,) = Board(), await dispatched(psql, 1)
    pooled.watch(job_id, board.notify)
    await until(lambda: board.has([job_id], ""), 10, "it is notified")

    await changed(psql, [job_id], "changed")
    await until(lambda: board.has([job_id], "changed"), 10, "it is notified of the change")

    listening = "select count(*) from pg_stat_activity where query ilike 'listen%'"
    assert await psql.fetchval(listening) == 0
    await pooled.close()
    await database.close()


@pytest.mark.parametrize("payload", ["nonsense", "00", "\N{SNOWMAN}"])
async def test_malformed_notification_is_ignored(
    watching: Hub[str], psql: Any, database: Database, payload: str
) -> None:
    board, (job_id,) = Board(), await dispatched(psql, 1)
    watching.watch(job_id, board.notify)
    await heard(watching, board, psql, database)

    await changed(psql, [job_id], "changed")
    await database.run(notify.send(notify.CHANGES, payload))

    await until(lambda: board.has([job_id], "changed"), 10, "it is notified of the change")


async def test_unreadable_row_does_not_delay_others(database: Database, psql: Any) -> None:
    bad, good = ids = await dispatched(psql, 2)

    def state_of(row: Any) -> str:
        if row["id"] == bad:
            raise KeyError("no such column")
        return "fine"

    picky: Hub[str] = Hub(database, jobs.changed_view, state_of)
    board = Board()
    for job_id in ids:
        picky.watch(job_id, board.notify)

    await until(lambda: board.has([good], "fine"), 10, "the good one is notified")
    assert "cannot be read" in str(board.errors[0])
    await picky.close()


async def test_a_slow_reader_gets_the_newest(watching: Hub[str], psql: Any) -> None:
    board, (job_id,) = Board(), await dispatched(psql, 1)
    with watching.watching(job_id) as newest:
        watching.watch(job_id, board.notify)
        for message in ("one", "two", "three"):
            await changed(psql, [job_id], message)
            await until(lambda m=message: board.has([job_id], m), 10, "the quick one is notified")

        assert await newest.next() == "three"


async def test_unwatch_frees_all_state(watching: Hub[str], psql: Any) -> None:
    board, ids = Board(), await dispatched(psql, 10)
    for job_id in ids:
        watching.watch(job_id, board.notify)
    await until(lambda: board.has(ids, ""), 10, "all are notified")

    for job_id in ids:
        watching.unwatch(job_id, board.notify)
    watching.unwatch(uuid4(), board.notify)

    assert watching._watched == {}


async def test_close_notifies_remaining_watchers(watching: Hub[str], psql: Any) -> None:
    (job_id,) = await dispatched(psql, 1)
    with watching.watching(job_id) as newest:
        await newest.next()
        waiting = asyncio.create_task(newest.next())
        await watching.close()

        with pytest.raises(HubClosed, match="watch it again"):
            await waiting


async def test_silent_listener_is_replaced(
    watching: Hub[str], psql: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL", 0.1)
    board, (job_id,) = Board(), await dispatched(psql, 1)
    watching.watch(job_id, board.notify)
    await heard(watching, board, psql, database)
    listener = watching._listener._listener
    connection = listener._connection
    assert connection is not None
    # It stays open and hears nothing, as behind a firewall that forgot it.
    await connection.execute("unlisten *")

    await until(lambda: listener._connection not in (None, connection), 20, "another listens")


def _message(row: Row) -> str:
    return row["progress_message"] or ""


async def dispatched(psql: Any, count: int) -> list[UUID]:
    rows = await psql.fetch(
        "insert into forge_jobs (job_type) select 'x' from generate_series(1, $1) returning id",
        count,
    )
    return [row["id"] for row in rows]


async def changed(psql: Any, ids: Sequence[UUID], message: str) -> None:
    await psql.execute(
        "update forge_jobs set progress_message = $2 where id = any ($1::uuid[])", ids, message
    )


async def heard(watching: Hub[str], board: Board, psql: Any, database: Database) -> None:
    """Wait until the hub receives notifications and has read all pending changes."""
    await until(watching._listener.hears, 10, "the hub listens")
    (mark,) = await dispatched(psql, 1)
    watching.watch(mark, board.notify)
    await until(lambda: board.has([mark], ""), 10, "the mark is notified")
    await changed(psql, [mark], "heard")
    await database.run(notify.send(notify.CHANGES, mark.hex))
    await until(lambda: board.has([mark], "heard"), 10, "the mark's change is received")
    watching.unwatch(mark, board.notify)
