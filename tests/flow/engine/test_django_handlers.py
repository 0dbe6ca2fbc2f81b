"""Handlers that use Django: a connection that was lost fails no later job."""

from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.faults.kit.process import wait_until
from tests.flow.command import Project

APP = """
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
        "OPTIONS": {"application_name": "django"},
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
KINDS = ("in_thread", "in_process", "on_the_loop", "on_the_loop_of_a_process")
OPEN = "select pid from pg_stat_activity where application_name = 'django'"


@pytest.mark.parametrize("age", ["0", "600", "None"])
def test_a_lost_connection_fails_no_job(database_url: str, tmp_path: Path, age: str) -> None:
    (tmp_path / "site_jobs.py").write_text(APP)
    project = Project(database_url, tmp_path)
    project.env["AGE"] = age
    with project.worker("--max-concurrent", "1", app="site_jobs:app") as worker:
        for kind in KINDS:
            for _ in range(3):
                (job_id,) = project.row("select forge_dispatch(%s, 'null')::text", kind)
                ended = partial(_ended, project, job_id)
                status = wait_until(ended, 30, f"{kind} has ended")
                assert status == "completed", (kind, worker.output())
                _lose_connections(database_url)
        log = worker.output()

    assert "Traceback" not in log


def _ended(project: Project, job_id: str) -> str | None:
    status = project.status(job_id)
    return status if status in ("completed", "dead_letter") else None


def _lose_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as psql:
        psql.execute(f"select pg_terminate_backend(pid) from ({OPEN}) as open")
