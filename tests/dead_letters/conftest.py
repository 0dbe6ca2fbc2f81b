"""Job types that fail until the test repairs them."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from forge import DeadLetter, Forge, JobContext, JobFailed, NonRetryable
from tests.apps import Work, app, make_app, work

__all__ = ["Bury", "Flaky", "app", "bury", "flaky", "make_app", "work"]

Bury = Callable[..., Awaitable[DeadLetter]]


class Flaky:
    """A job type whose jobs fail while `broken` is set."""

    def __init__(self) -> None:
        self.broken = True
        self.done: list[Any] = []

    async def run(self, ctx: JobContext, input: dict[str, Any]) -> Any:
        if self.broken or input.get("hopeless"):
            raise NonRetryable(f"no luck with {input.get('n')}")
        self.done.append(input)
        return input


@pytest.fixture
def flaky(app: Forge) -> Flaky:
    """The types `flaky` and, with a category, `fetch`; both fail while `broken` is set."""
    flaky = Flaky()

    @app.job(name="flaky")
    async def run(ctx: JobContext, input: dict[str, Any]) -> Any:
        return await flaky.run(ctx, input)

    @app.job(name="fetch", category="ingestion", requires=["connection_id"])
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> Any:
        return await flaky.run(ctx, input)

    return flaky


@pytest.fixture
async def bury(app: Forge, flaky: Flaky, work: Work) -> Bury:
    """Dispatch a job that becomes a dead letter, and return the dead letter."""
    await work(app)

    async def bury(input: dict[str, Any] | None = None, type: str = "flaky", **options: Any) -> Any:
        handle = await app.dispatch(type, input or {"n": 1}, **options)
        with pytest.raises(JobFailed, match="dead_letter"):
            await handle.result(20)
        page = await app.dead_letters.list(limit=1)
        assert page.items[0].job_id == handle.id
        return await app.dead_letters.get(page.items[0].dlq_id)

    return bury
