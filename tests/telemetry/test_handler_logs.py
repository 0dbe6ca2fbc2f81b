"""Log records of handlers name their attempt, at the configured level."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command import Project
from tests.faults.kit.process import Child, wait_until

APP = """
import asyncio
import logging
import threading

import forge

{setup}
app = forge.Forge()
log = logging.getLogger("shop.mail")


def say() -> None:
    log.debug("details")
    log.info("hello", extra={{"colour": "red"}})


@app.job
async def on_the_loop(ctx: forge.JobContext) -> None:
    say()
    await asyncio.create_task(other())


async def other() -> None:
    log.info("from a task")


@app.job
def in_thread(ctx: forge.JobContext) -> None:
    say()


@app.job(isolation="process")
def in_process(ctx: forge.JobContext) -> None:
    say()
    print("printed")


@app.job(isolation="process")
async def on_the_loop_of_a_process(ctx: forge.JobContext) -> None:
    say()


@app.job(max_attempts=1)
async def failing(ctx: forge.JobContext) -> None:
    raise ValueError("no such user")
"""
KINDS = ("on_the_loop", "in_thread", "in_process", "on_the_loop_of_a_process")


def project(url: str, folder: Path, setup: str = "") -> Project:
    (folder / "mail_jobs.py").write_text(APP.format(setup=setup))
    return Project(url, folder)


def ran(project: Project, worker: Child, kind: str) -> str:
    correlation = str(uuid4())
    dispatch = "select forge_dispatch(%s, 'null', tenant_id => 7, correlation_id => %s)::text"
    (job_id,) = project.row(dispatch, kind, correlation)
    end = "dead_letter" if kind == "failing" else "completed"
    project.wait_for_status(job_id, end)
    wait_until(lambda: f"{job_id} " in worker.output(), 20, "its end is logged")
    return str(job_id)


def records(worker: Child) -> list[dict[str, Any]]:
    return [json.loads(line) for line in worker.output().splitlines()]


@pytest.mark.parametrize("level", ["info", "debug"])
def test_records_carry_their_attempt_wherever_the_handler_runs(
    database_url: str, tmp_path: Path, level: str
) -> None:
    mail = project(database_url, tmp_path)
    options = ("--log-format", "json", "--log-level", level)
    with mail.worker(*options, app="mail_jobs:app") as worker:
        ids = {kind: ran(mail, worker, kind) for kind in KINDS}
        said = [record for record in records(worker) if record["logger"] == "shop.mail"]

    expected = [("info", "hello"), ("info", "from a task")]
    if level == "debug":
        expected.insert(0, ("debug", "details"))
    for kind, job_id in ids.items():
        own = [record for record in said if record["job_id"] == job_id]
        wanted = expected if kind == "on_the_loop" else expected[:-1]
        assert [(record["level"], record["message"]) for record in own] == wanted, kind
        for record in own:
            assert (record["job_type"], record["attempt"], record["tenant_id"]) == (kind, 1, 7)
            assert record["correlation_id"] is not None
        assert own[-1].get("colour") == ("red" if kind != "on_the_loop" else None)


def test_lines_for_people_name_the_job(database_url: str, tmp_path: Path) -> None:
    mail = project(database_url, tmp_path)
    with mail.worker(app="mail_jobs:app") as worker:
        job_id = ran(mail, worker, "in_thread")

        assert f"hello (in_thread {job_id}, attempt 1)" in worker.output()
        assert "details" not in worker.output()


def test_handlers_of_the_apps_own_logging_get_the_fields(database_url: str, tmp_path: Path) -> None:
    setup = (
        "class Own(logging.Formatter):\n"
        "    def format(self, record):\n"
        "        return f'own {record.getMessage()} {getattr(record, \"job_id\", None)} '\n\n\n"
        "handler = logging.StreamHandler()\n"
        "handler.setFormatter(Own())\n"
        'logging.basicConfig(level="INFO", handlers=[handler])\n'
    )
    mail = project(database_url, tmp_path, setup)
    with mail.worker(app="mail_jobs:app") as worker:
        for kind in KINDS:
            job_id = ran(mail, worker, kind)

            assert f"own hello {job_id} " in worker.output(), kind


@pytest.mark.parametrize("is_json", [True, False])
def test_the_record_of_a_failed_attempt_has_the_traceback(
    database_url: str, tmp_path: Path, *, is_json: bool
) -> None:
    mail = project(database_url, tmp_path)
    options = ("--log-format", "json") if is_json else ()
    with mail.worker(*options, app="mail_jobs:app") as worker:
        job_id = ran(mail, worker, "failing")
        written = worker.output()
        if is_json:
            (record,) = [r for r in records(worker) if r.get("job_id") == job_id]
            written = record["exception"]

    assert 'raise ValueError("no such user")' in written
    assert 'mail_jobs.py", line ' in written
