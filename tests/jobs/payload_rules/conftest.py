"""A job type with a category."""

from typing import Any

import pytest

from forge import Forge, JobContext
from tests.apps import app, make_app, work
from tests.jobs.payload_rules.ways import Fetch, register_types

__all__ = ["app", "make_app", "work"]


@pytest.fixture
async def fetch(app: Forge) -> Fetch:
    """A type of a category whose payloads must name a connection."""

    @app.job(name="fetch", category="ingestion", requires=["connection_id"])
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
        return input

    await register_types(app)
    return fetch
