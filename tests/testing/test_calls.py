"""call: a handler without a database."""

from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from forge import InvalidPayload, InvalidValue, JobContext, job
from forge.testing import RecordingContext, call, sync


class Export(BaseModel):
    format: str


class Report(BaseModel):
    file: str


@job(max_attempts=3)
async def export(ctx: JobContext, input: Export) -> Report:
    ctx.progress(50, "half")
    ctx.checkpoint = {"row": 5, "after": ctx.checkpoint}
    ctx.log.info("exported", rows=5)
    await ctx.heartbeat()
    if ctx.attempt == 1:
        raise ConnectionError("away")
    return Report(file=f"users.{input.format} for {ctx.auth.name}, last: {ctx.is_last_attempt}")


@job
def fetch(ctx: JobContext) -> Any:
    ctx.heartbeat()
    return ctx.http.get("http://example.com/").text


async def test_a_handler_is_called_with_a_context_that_records() -> None:
    called = await call(
        export, Export(format="csv"), attempt=3, auth={"name": "ann"}, checkpoint={"row": 4}
    )

    assert called.output == Report(file="users.csv for ann, last: True")
    assert called.progress_log == [(50, "half")]
    assert called.log_lines == [("info", "exported", {"rows": 5})]
    assert called.checkpoint == {"row": 5, "after": {"row": 4}}
    assert called.context.heartbeats == 1


async def test_a_context_of_ones_own_can_be_looked_at_after_an_error() -> None:
    context = RecordingContext(export, {"format": "csv"})

    with pytest.raises(ConnectionError):
        await call(export, context=context)

    assert context.progress_log == [(50, "half")]


async def test_the_input_is_checked_as_a_dispatch_checks_it() -> None:
    with pytest.raises(InvalidPayload, match="format"):
        await call(export, {"formt": "csv"})
    with pytest.raises(InvalidValue, match="no 'atempt'; did you mean attempt"):
        await call(export, {"format": "csv"}, atempt=2)


def test_plain_functions_are_called_in_a_thread_with_the_client_they_are_given() -> None:
    answer = httpx.MockTransport(lambda request: httpx.Response(200, text="hello"))

    assert sync.call(fetch, http=httpx.Client(transport=answer)).output == "hello"
    with pytest.raises(InvalidValue, match="pass one"):
        sync.call(fetch)


async def test_what_needs_a_database_says_so() -> None:
    @job
    async def reads(ctx: JobContext) -> None:
        await ctx.db.fetch("select 1")

    with pytest.raises(InvalidValue, match="run_one"):
        await call(reads)
