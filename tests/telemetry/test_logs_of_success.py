"""Batched lines of successful attempts look like ordinary log lines."""

import io
import json
import logging
import time
from collections.abc import Iterator
from uuid import UUID

import pytest

from forge.cli.processes.worker import set_up_logging
from forge.core.events import Events
from forge.core.job import Job
from forge.core.outcome import Completion, Returned
from forge.telemetry.logs.lines import MAX_BATCH, LineHandler, line_handler
from forge.telemetry.logs.listener import log_events, logger
from tests.faults.kit.process import until
from tests.telemetry.test_logs import JOB

JOBS = {
    "plain": JOB._replace(tenant_id=None, correlation_id=None),
    "with everything": JOB,
    "with a name that JSON escapes": JOB._replace(type='a "quoted" \\ naïve\nname'),
}


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, own = root.handlers[:], root.level, logger.level
    root.handlers[:] = []
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logger.setLevel(own)


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
async def test_a_line_is_the_same_either_way(
    log_format: str, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.123456)

    quick, ordinary = await said(log_format, job, None), await said(log_format, job, "listener")

    assert quick == ordinary
    assert quick.endswith("\n")


async def test_lines_and_records_keep_their_order() -> None:
    stream = set_up("text")
    events = listening()

    completed(events, JOB)
    logger.warning("something else")
    completed(events, JOB)
    handler().flush()

    words = [line.split()[3] for line in stream.getvalue().splitlines()]
    assert words == ["export", "something", "export"]


async def test_a_line_is_written_before_long() -> None:
    stream = set_up("json")
    events = listening()

    completed(events, JOB)

    await until(stream.getvalue, 10, "the line is there")
    assert json.loads(stream.getvalue())["job_id"] == str(JOB.id)


async def test_many_lines_are_not_kept_waiting() -> None:
    stream = set_up("text")
    events = listening()

    for _ in range(MAX_BATCH):
        completed(events, JOB)

    assert stream.getvalue().count("\n") == MAX_BATCH


async def test_every_log_handler_gets_every_record() -> None:
    set_up("text")
    heard: list[logging.LogRecord] = []
    listener = logging.Handler()
    listener.emit = heard.append  # type: ignore[method-assign]
    logger.addHandler(listener)
    try:
        assert line_handler(logger) is None
        completed(listening(), JOB)
    finally:
        logger.removeHandler(listener)

    assert [record.__dict__["job_id"] for record in heard] == [UUID(int=1)]


async def test_a_reader_that_is_gone_does_not_stop_jobs() -> None:
    stream = set_up("text")
    events = listening()
    completed(events, JOB)
    stream.close()

    handler().flush()

    handler().stream = another = io.StringIO()
    completed(events, JOB)
    handler().flush()
    assert str(JOB.id) in another.getvalue()


async def said(log_format: str, job: Job, listener: str | None) -> str:
    stream = set_up(log_format)
    root = logging.getLogger()
    if listener is not None:
        root.addHandler(logging.NullHandler())
    completed(listening(), job)
    for each in root.handlers:
        each.flush()
    root.handlers[:] = []
    return stream.getvalue()


def set_up(log_format: str) -> io.StringIO:
    logging.getLogger().handlers[:] = []
    set_up_logging(log_format, "info")
    logging.getLogger().setLevel(logging.INFO)
    stream = io.StringIO()
    handler().stream = stream
    return stream


def handler() -> LineHandler:
    (found,) = logging.getLogger().handlers
    assert isinstance(found, LineHandler)
    return found


def listening() -> Events:
    events = Events()
    log_events(events)
    return events


def completed(events: Events, job: Job) -> None:
    events.completed(job, Returned(None), Completion(job.id, job.lease, None), 0.25, None)
