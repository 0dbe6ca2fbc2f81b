"""Acks that the database refuses: what a job came to is kept, or its attempt has failed."""

import asyncio
from typing import Any

import pytest

from forge import Forge, JobContext, Retry
from forge.core.events import Event, WorkerNotice
from forge.worker import batch_acker
from tests.apps import working
from tests.faults.kit.process import until

# An internal error of the server; to a handler's output it has no relation.
INTERNAL = "XX000"
CHECK_VIOLATION = "23514"
BREAK = """
    create function break() returns trigger language plpgsql
    as $$ begin raise exception 'broken' using errcode = '{}'; end $$;
    create trigger break before update on forge_jobs for each row
    when (new.status in ('completed', 'dead_letter', 'retry')) execute function break()
"""


REFUSE_OUTPUTS = {
    "a constraint": "alter table forge_jobs add constraint no_output check (output is null)",
    "a trigger": """
        create function refuse() returns trigger language plpgsql
        as $$ begin raise exception 'violates "no_output"'; end $$;
        create trigger refuse before update on forge_jobs for each row
        when (new.output is not null) execute function refuse()
    """,
}


@pytest.mark.parametrize(
    ("ends_as", "state"),
    [("completed", INTERNAL), ("dead_letter", INTERNAL), ("dead_letter", CHECK_VIOLATION)],
)
async def test_an_outcome_that_is_refused_for_now_is_written_later(
    ends_as: str, state: str, app: Forge, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_acker, "REFUSAL_PAUSE", 0.1)
    refusals: list[Event] = []
    app.events.listeners.append(
        lambda event: refusals.append(event) if _is_refusal(event) else None
    )
    is_broken, ran = asyncio.Event(), []

    @app.job(max_attempts=1)
    async def end(ctx: JobContext) -> str:
        await is_broken.wait()
        ran.append(ctx.lease)
        if ends_as == "dead_letter":
            raise ValueError("its own error")
        return "its result"

    async with working(app) as worker:
        handle = await end.dispatch()
        await until(lambda: len(worker.runner.running) == 1, 10, "it runs")
        await psql.execute(BREAK.format(state))
        is_broken.set()
        await until(lambda: len(refusals) > 2, 20, "its end was refused, and sent again")
        await psql.execute("drop trigger break on forge_jobs")
        job = await until(lambda: _final(handle), 20, "it is final")

    assert ran == [1]
    assert (job.status, job.attempts) == (ends_as, 1)
    assert (job.output, job.last_error) in [
        ("its result", None),
        (None, "its own error"),
        (None, "unstorable: the database refused: broken"),
    ]


@pytest.mark.parametrize("refuse", REFUSE_OUTPUTS.values(), ids=REFUSE_OUTPUTS)
@pytest.mark.parametrize("notes", [False, True], ids=["plain", "with progress"])
async def test_an_output_that_is_always_refused_uses_up_the_attempts(
    refuse: str, notes: bool, app: Forge, psql: Any
) -> None:
    ran = []

    @app.job(retry=Retry(max_attempts=3, max_backoff="10ms"))
    async def end(ctx: JobContext) -> str:
        ran.append(ctx.attempt)
        if notes:
            ctx.progress(50)
        return "a token: 4711"

    await psql.execute(refuse)
    async with working(app):
        handle = await end.dispatch()
        job = await until(lambda: _final(handle), 20, "it is final")
        (letter,) = (await app.dead_letters.list()).items

    assert ran == [1, 2, 3]
    assert (job.status, job.attempts, job.output) == ("dead_letter", 3, None)
    assert (letter.exception, letter.attempt_count) == ("forge.UnstorableOutput", 3)
    assert letter.error_message is not None
    assert letter.error_message.startswith("the output cannot be stored: the database refused: ")
    assert "no_output" in letter.error_message
    assert "4711" not in letter.error_message
    outcomes = await psql.fetch("select outcome from forge_attempts order by lease")
    assert [row["outcome"] for row in outcomes] == ["retry", "retry", "dead_letter"]


async def test_a_type_without_dead_letters_fails_by_a_refused_output(app: Forge, psql: Any) -> None:
    @app.job(max_attempts=1, dead_letter=False)
    async def end(ctx: JobContext) -> str:
        return "its result"

    await psql.execute(REFUSE_OUTPUTS["a constraint"])
    async with working(app):
        handle = await end.dispatch()
        job = await until(lambda: _final(handle), 20, "it is final")

    assert (job.status, job.attempts) == ("failed", 1)


async def test_one_refused_output_fails_alone(app: Forge, psql: Any) -> None:
    @app.job(max_attempts=1)
    async def end(ctx: JobContext, input: dict[str, int]) -> int:
        return input["n"]

    await psql.execute("alter table forge_jobs add constraint small check (output <> '13')")
    async with working(app):
        handles = [await end.dispatch({"n": n}) for n in range(20)]
        jobs = [await until(lambda h=h: _final(h), 20, "it is final") for h in handles]

    assert [n for n, job in enumerate(jobs) if job.status == "dead_letter"] == [13]
    assert all(job.status == "completed" for n, job in enumerate(jobs) if n != 13)


async def _final(handle: Any) -> Any:
    job = await handle.get()
    return job if job.is_final else None


def _is_refusal(event: Event) -> bool:
    return isinstance(event, WorkerNotice) and event.message.endswith("was refused")
