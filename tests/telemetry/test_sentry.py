"""Sentry through its own hooks, as documented: what is reported, and what is not."""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Project
from tests.faults.kit.process import wait_until
from tests.surface.pages import CHECKOUT, blocks

pytestmark = pytest.mark.skipif(
    find_spec("sentry_sdk") is None, reason="sentry-sdk is not installed; run `make`"
)

PAGE = CHECKOUT / "docs" / "howto" / "sentry.md"
BARE = """
import sentry_sdk

import forge
from forge import Forge

sentry_sdk.init()
app = Forge()
"""
JOBS = """

@app.job(retry=forge.Retry(max_attempts=2, backoff="fixed", max_backoff="1s"))
async def log_in(ctx: forge.JobContext, input: dict) -> None:
    if input["way"] == "snooze":
        if ctx.checkpoint is None:
            ctx.checkpoint = "seen"
            raise forge.Snooze("1s")
        return
    raise ValueError(f"attempt {ctx.attempt} with token={input['token']}")
"""


class Sentry:
    """As much of Sentry as takes in what its clients send."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def dsn(self) -> str:
        return f"http://key@127.0.0.1:{self._server.server_address[1]}/1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def sentry() -> Iterator[Sentry]:
    made = Sentry()
    yield made
    made.close()


@pytest.fixture
def project(database_url: str, tmp_path: Path, sentry: Sentry) -> Project:
    made = Project(database_url, tmp_path)
    made.env["SENTRY_DSN"] = sentry.dsn
    return made


def test_a_job_that_is_given_up_is_an_event_with_the_fields_of_its_attempt(
    project: Project, sentry: Sentry
) -> None:
    (event,) = events_of(project, sentry, BARE)

    assert (event["level"], event["logger"]) == ("error", "forge")
    assert (event["extra"]["job_type"], event["extra"]["outcome"]) == ("log_in", "dead_letter")
    assert (event["extra"]["attempt"], event["extra"]["retries"]) == (2, 1)
    assert event["extra"]["error"] == "ValueError: attempt 2 with token=[redacted]"
    assert "CANARY" not in json.dumps(event)


def test_the_middleware_of_the_page_sends_the_exception_of_the_last_attempt(
    project: Project, sentry: Sentry
) -> None:
    (block,) = blocks(PAGE, "python")
    alone = 'import sentry_sdk.integrations.logging as by_log\nby_log.ignore_logger("forge")\n'

    (event,) = events_of(project, sentry, block.code + alone)

    (raised,) = event["exception"]["values"]
    assert (raised["type"], raised["stacktrace"]["frames"][-1]["function"]) == (
        "ValueError",
        "log_in",
    )
    assert event["tags"]["job_type"] == "log_in"
    assert event["contexts"]["job"]["attempt"] == 2


def events_of(project: Project, sentry: Sentry, app: str) -> list[dict[str, Any]]:
    """Let a worker run one job that snoozes and one that is given up; return what Sentry got."""
    (project.folder / "watched.py").write_text(app + JOBS)
    with project.worker(app="watched:app") as worker:
        for way in ("snooze", "fail"):
            value = json.dumps({"way": way, "token": "CANARY-4711"})
            project.rows("select forge_dispatch('log_in', %s)", value)
        wait_until(lambda: statuses(project) == {"completed", "dead_letter"}, 30, "both are over")
        worker.sigterm()  # it sends the last of them when it ends
        worker.wait(30)
    return sentry.events


def statuses(project: Project) -> set[str]:
    return {row[0] for row in project.rows("select status from forge_jobs")}


def _handler_of(sentry: Sentry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            sentry.events += _events_in(body)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler


def _events_in(envelope: bytes) -> Iterator[dict[str, Any]]:
    """Read an envelope: a header, and items of a header and a payload each."""
    _, _, rest = envelope.partition(b"\n")
    while rest:
        header, _, rest = rest.partition(b"\n")
        item = json.loads(header)
        payload, rest = rest[: item["length"]], rest[item["length"] :].lstrip(b"\n")
        if item["type"] == "event":
            yield json.loads(payload)
