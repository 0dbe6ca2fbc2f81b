"""`app.sync`: mutations, actions and dead letters without an event loop."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from forge import (
    DeadLetter,
    Forge,
    InvalidPayload,
    InvalidValue,
    JobContext,
    MutationContext,
    NotRegistered,
)
from forge.dead_letters import DeadLetters
from forge.sync.dead_letters import SyncDeadLetters
from forge.sync.handle import SyncHandle
from tests.apps import Work


def test_a_mutation_commits_its_dispatches(app: Forge) -> None:
    @app.job
    async def welcome(ctx: JobContext, input: dict[str, str]) -> None: ...

    @app.mutation
    async def register(ctx: MutationContext, email: str) -> dict[str, Any]:
        handle = await ctx.dispatch_job("welcome", {"email": email})
        return {"job": str(handle.id), "thread": threading.get_ident()}

    by_name = app.sync.call("register", {"email": "ada@example.com"}, tenant_id=7)
    by_definition = app.sync.call(register, {"email": "bob@example.com"})

    job = app.sync.get(by_name["job"])
    assert (job.input, job.tenant_id) == ({"email": "ada@example.com"}, 7)
    assert app.sync.get(by_definition["job"]).tenant_id is None
    assert by_name["thread"] != threading.get_ident()


def test_a_call_raises_the_same_errors_as_the_async_app(app: Forge) -> None:
    @app.action
    async def greet(ctx: Any, name: str) -> str:
        raise LookupError(name)

    with pytest.raises(NotRegistered, match="no mutation or action named 'great'"):
        app.sync.call("great")
    with pytest.raises(InvalidPayload, match=r"\$\.name"):
        app.sync.call("greet", {})
    with pytest.raises(LookupError, match="ada"):
        app.sync.call("greet", {"name": "ada"})


async def test_dead_letters_are_reviewed_without_a_loop(app: Forge, work: Work) -> None:
    newest, middle, oldest = await _failed(app, work)

    def review() -> None:
        letters = app.sync.dead_letters
        assert [group.letters for group in letters.groups(job_type="fail")] == [3]
        assert letters.get(newest.dlq_id).payload == {"n": 2}

        letters.discard(oldest.dlq_id, notes="not wanted any more")
        made = letters.reprocess(middle.dlq_id, payload={"n": 5})

        assert app.sync.get(made.new_job_id).input == {"n": 5}
        assert letters.statistics().by_status["discarded"] == 1
        assert letters.plan(job_type="fail").letters >= 1

    await asyncio.to_thread(review)


async def test_many_dead_letters_are_reprocessed_by_a_worker(app: Forge, work: Work) -> None:
    await _failed(app, work)

    def review() -> None:
        request = app.sync.dead_letters.reprocess_many(job_type="fail", notes="try again")
        assert isinstance(request, SyncHandle)
        assert request.get().job_type == "forge.reprocess"

    await asyncio.to_thread(review)


def test_dead_letters_have_every_method_of_the_async_app() -> None:
    verbs = {name for name in vars(DeadLetters) if not name.startswith("_")}
    # the same verbs for an HTTP caller, which the server alone uses
    verbs -= {"running"}

    assert {name for name in vars(SyncDeadLetters) if not name.startswith("_")} == verbs


def test_dead_letters_reject_the_conn_argument(app: Forge, database_url: str) -> None:
    with (
        psycopg.connect(database_url) as conn,
        pytest.raises(InvalidValue, match="takes no conn="),
    ):
        app.sync.dead_letters.list(conn=conn)


async def _failed(app: Forge, work: Work) -> Sequence[DeadLetter]:
    """Create three dead letters, and return them, newest first."""

    @app.job(max_attempts=1)
    async def fail(ctx: JobContext, input: dict[str, int]) -> None:
        raise LookupError("no such thing")

    await work(app)
    for n in range(3):
        handle = await fail.dispatch({"n": n})
        assert [job.status async for job in handle.updates()][-1] == "dead_letter"
    page = await asyncio.to_thread(lambda: app.sync.dead_letters.list(job_type="fail"))
    return page.items
