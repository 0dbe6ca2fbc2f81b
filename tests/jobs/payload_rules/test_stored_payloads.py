"""Stored payloads that do not validate: one attempt, then a dead letter."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, JobContext, JobFailed, Retry
from tests.apps import Work
from tests.worker import handlers


class Address(BaseModel):
    street: str


async def dead_letter_of(app: Forge, psql: Any, job_type: str, payload: str) -> Any:
    """Insert a payload without checks, wait for its job and return its dead letter."""
    job: UUID = await psql.fetchval(
        "insert into forge_jobs (job_type, input, max_attempts) values ($1, $2, 5) returning id",
        job_type,
        payload,
    )
    with pytest.raises(JobFailed):
        await app.handle(job).result(20)
    return await psql.fetchrow("select * from forge_dead_letters where job_id = $1", job)


@pytest.mark.parametrize("category", [None, "maintenance"])
async def test_a_payload_that_does_not_fit_its_model_is_not_retried(
    app: Forge, work: Work, psql: Any, category: str | None
) -> None:
    @app.job(category=category)
    async def post(ctx: JobContext, input: Address) -> None: ...

    await work(app)
    letter = await dead_letter_of(app, psql, "post", '{"number": 3}')

    assert (letter["error_class"], letter["attempt_count"]) == ("non_retryable", 1)
    assert "$.street" in letter["error_message"]


async def test_a_payload_that_is_not_a_dict_is_not_retried(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    def post(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await work(app)
    letter = await dead_letter_of(app, psql, "post", "[1]")

    assert (letter["error_class"], letter["attempt_count"]) == ("non_retryable", 1)


async def test_a_payload_that_does_not_fit_in_a_child_process_is_not_retried(
    app: Forge, work: Work, psql: Any
) -> None:
    app.register(handlers.where)
    await work(app)

    letter = await dead_letter_of(app, psql, "where", "[1]")

    assert (letter["error_class"], letter["attempt_count"]) == ("non_retryable", 1)


async def test_an_app_can_classify_a_bad_payload_as_transient(
    app: Forge, work: Work, psql: Any
) -> None:
    app.classify(InvalidPayload, "transient")

    @app.job(retry=Retry(max_attempts=2, max_backoff="10ms"))
    async def post(ctx: JobContext, input: Address) -> None: ...

    await work(app)
    job = await psql.fetchval(
        "insert into forge_jobs (job_type, input, max_attempts) values ('post', '{}', 2) "
        "returning id"
    )
    with pytest.raises(JobFailed):
        await app.handle(job).result(20)

    assert (await app.handle(job).get()).attempts == 2


async def test_a_bad_payload_dispatched_by_a_handler_is_an_ordinary_error(
    app: Forge, work: Work
) -> None:
    @app.job(retry=Retry(max_attempts=2, max_backoff="10ms"))
    async def post(ctx: JobContext, input: dict[str, Any]) -> int:
        if ctx.attempt == 1:
            await app.dispatch("post", [1])  # type: ignore[arg-type]
        return ctx.attempt

    await work(app)

    assert await (await post.dispatch({})).result(20) == 2
