"""Handlers that use Django or SQLAlchemy: a connection that was lost fails no later job."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command import Project
from tests.faults.kit.process import wait_until

DJANGO = """
import os

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

if not settings.configured:
    url = conninfo_to_dict(os.environ["FORGE_DATABASE_URL"])
    age = os.environ["AGE"]
    settings.configure(DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url["dbname"], "USER": url["user"], "HOST": url["host"], "PORT": url["port"],
        "CONN_MAX_AGE": None if age == "None" else int(age),
        "OPTIONS": {"application_name": "orm"},
    }})
    django.setup()

from django.db import connection

import forge

app = forge.Forge()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]


@app.job(max_attempts=1)
def in_thread(ctx: forge.JobContext) -> int:
    return backend()


@app.job(max_attempts=1, isolation="process")
def in_process(ctx: forge.JobContext) -> int:
    return backend()


@app.job(max_attempts=1)
async def on_the_loop(ctx: forge.JobContext) -> int:
    return await sync_to_async(backend)()


@app.job(max_attempts=1, isolation="process")
async def on_the_loop_of_a_process(ctx: forge.JobContext) -> int:
    return await sync_to_async(backend)()
"""
SCOPED_SESSIONS = """
import os
from functools import wraps

from sqlalchemy import create_engine, text
from sqlalchemy.orm import scoped_session, sessionmaker

import forge

app = forge.Forge()
url = os.environ["FORGE_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
engine = create_engine(url, connect_args={"application_name": "orm"})
Session = scoped_session(sessionmaker(engine))


def with_session(handler):
    @wraps(handler)
    def run(*args):
        try:
            return handler(*args)
        finally:
            Session.remove()

    return run


def backend() -> int:
    return Session.execute(text("select pg_backend_pid()")).scalar_one()


@app.job(max_attempts=1)
@with_session
def in_thread(ctx: forge.JobContext) -> int:
    return backend()


@app.job(max_attempts=1, isolation="process")
@with_session
def in_process(ctx: forge.JobContext) -> int:
    return backend()
"""
KINDS = ("in_thread", "in_process", "on_the_loop", "on_the_loop_of_a_process")
OPEN = "select pid from pg_stat_activity where application_name = 'orm'"


@pytest.mark.parametrize("age", ["0", "600", "None"])
def test_a_lost_connection_of_django_fails_no_job(
    database_url: str, tmp_path: Path, age: str
) -> None:
    (tmp_path / "orm_jobs.py").write_text(DJANGO)
    project = Project(database_url, tmp_path)
    project.env["AGE"] = age

    _lose_connections_between_jobs(project, KINDS)


def test_a_lost_connection_of_a_scoped_session_fails_no_job(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "orm_jobs.py").write_text(SCOPED_SESSIONS)

    _lose_connections_between_jobs(Project(database_url, tmp_path), KINDS[:2])


def _lose_connections_between_jobs(project: Project, kinds: Sequence[str]) -> None:
    # forge_dispatch() wakes no worker.
    project.env["FORGE_WORKER_IDLE_POLL_INTERVAL"] = "100ms"
    with project.worker("--max-concurrent", "1", app="orm_jobs:app") as worker:
        for kind in kinds:
            for _ in range(3):
                (job_id,) = project.row("select forge_dispatch(%s, 'null')::text", kind)
                ended = partial(_ended, project, job_id)
                status = wait_until(ended, 30, f"{kind} has ended")
                assert status == "completed", (kind, worker.output())
                project.rows(f"select pg_terminate_backend(pid) from ({OPEN}) as open")


def _ended(project: Project, job_id: str) -> str | None:
    status = project.status(job_id)
    return status if status in ("completed", "dead_letter") else None
