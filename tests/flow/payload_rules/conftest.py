"""Apps and workers as the engine's tests have them, and a type with a category."""

from typing import Any

import pytest

from forge import Forge, JobContext
from tests.flow.engine.conftest import app, make_app, work
from tests.flow.payload_rules.ways import Fetch, make_known

__all__ = ["app", "make_app", "work"]


@pytest.fixture
async def fetch(app: Forge) -> Fetch:
    """A type of a category whose payloads must name a connection."""

    @app.job(name="fetch", category="ingestion", requires=["connection_id"])
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
        return input

    await make_known(app)
    return fetch
