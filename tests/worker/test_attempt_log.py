"""`ctx.log`: kept in the database from every kind of handler, redacted, bounded, and logged."""

import logging
from itertools import pairwise
from typing import Any

import pytest

from forge import Forge, JobContext
from forge.config.settings import RetentionConfig
from forge.core.timeline import EntryKind, TimelineEntry
from forge.store.connection.database import Database
from forge.worker.prune import Pruner
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.worker.handlers import log_in_child, write_log


async def log_on_loop(ctx: JobContext) -> None:
    write_log(ctx)


def log_in_thread(ctx: JobContext) -> None:
    write_log(ctx)


@pytest.mark.parametrize("kind", ["loop", "thread", "child"])
async def test_lines_of_every_kind_of_handler_are_stored_before_its_end(
    app: Forge, work: Work, kind: str
) -> None:
    app.register(log_in_child)
    app.job(log_on_loop)
    app.job(log_in_thread)
    await work(app)
    handle = await app.dispatch(f"log_in_{kind}" if kind != "loop" else "log_on_loop")
    await handle.result(timeout=60)

    entries = (await handle.timeline()).items

    assert [(entry.message, entry.attempt) for entry in of(entries, EntryKind.PROGRESS)] == [
        ("half way", 1)
    ]
    lines = of(entries, EntryKind.LOG)
    assert [(entry.detail["level"], entry.message) for entry in lines] == [
        ("debug", "looking"),
        ("info", "imported token=[redacted]"),
        ("warning", "slow"),
        ("error", "gave up"),
    ]
    fields = [entry.detail["fields"] for entry in lines]
    assert fields[:3] == [
        {"at": "a.csv"},
        {"rows": 500, "api_key": "[redacted]", "name": "a.csv"},
        {"seconds": 1.5},
    ]
    # What is no JSON, or too much of it, is kept as short texts.
    assert fields[3] == {"broken": "<class 'object'>", "big": "x" * 200}
    assert all(a.at <= b.at for a, b in pairwise(entries))


async def test_what_is_stored_is_redacted_and_what_is_logged_too(
    app: Forge, work: Work, psql: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app.job(log_on_loop)
    await work(app)
    with caplog.at_level(logging.DEBUG, logger="forge.job"):
        await (await app.dispatch("log_on_loop")).result(timeout=20)

    stored = await psql.fetchval("select string_agg(log::text, ' ') from forge_attempt_logs as log")

    assert "abc123" not in stored
    assert "k-123" not in stored
    records = [record for record in caplog.records if record.name == "forge.job"]
    assert [record.levelname for record in records] == ["DEBUG", "INFO", "WARNING", "ERROR"]
    assert records[1].getMessage() == "imported token=[redacted]"
    assert records[1].__dict__["fields"]["rows"] == 500
    assert records[0].pathname.endswith("handlers.py")


async def test_a_tight_loop_keeps_a_bounded_number_of_lines_and_the_last_one(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    app = make_app(log_lines=20)

    @app.job
    def chatter(ctx: JobContext) -> None:
        for n in range(5000):
            ctx.log.info(f"row {n}")
            ctx.progress(n / 50, f"row {n}")

    await work(app)
    await (await chatter.dispatch()).result(timeout=60)

    rows = await psql.fetch("select kind, message from forge_attempt_logs order by kind, number")
    messages = {
        kind: [r["message"] for r in rows if r["kind"] == kind] for kind in ["log", "progress"]
    }
    assert len(messages["log"]) == 20
    assert len(messages["progress"]) == 50
    assert messages["log"][-1] == messages["progress"][-1] == "row 4999"


async def test_jobs_that_do_not_log_send_no_statement_about_logs(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def plain(ctx: JobContext) -> None:
        ctx.progress(50)
        ctx.checkpoint = {"at": 1}

    await psql.execute("create extension pg_stat_statements")
    await work(app)
    for handle in [await plain.dispatch() for _ in range(5)]:
        await handle.result(timeout=20)

    sent = await psql.fetchval(
        "select coalesce(sum(calls), 0) from pg_stat_statements "
        "where query like '%insert into forge_attempt_logs%' and query not like '%snoozed%'"
        " and dbid = (select oid from pg_database where datname = current_database())"
    )
    assert sent == 0
    assert await psql.fetchval("select count(*) from forge_attempt_logs") == 0


async def test_logs_go_with_their_job(
    app: Forge, work: Work, psql: Any, database: Database
) -> None:
    app.job(log_on_loop)
    await work(app)
    pruned, erased = [await app.dispatch("log_on_loop") for _ in range(2)]
    for handle in (pruned, erased):
        await handle.result(timeout=20)

    await (await app.delete(erased.id)).result(timeout=20)
    jobs = "select distinct job_id from forge_attempt_logs"
    assert [row["job_id"] for row in await psql.fetch(jobs)] == [pruned.id]
    nothing = RetentionConfig(completed="1us", failed="1us")  # type: ignore[arg-type]
    await until(lambda: _is_pruned(psql, database, nothing), 20, "the job is pruned")

    assert await psql.fetch(jobs) == []


async def _is_pruned(psql: Any, database: Database, retention: RetentionConfig) -> bool:
    await Pruner(database.link(), retention).prune()
    return not await psql.fetchval("select count(*) from forge_jobs where job_type = 'log_on_loop'")


def of(entries: list[TimelineEntry], kind: EntryKind) -> list[TimelineEntry]:
    return [entry for entry in entries if entry.kind is kind]
