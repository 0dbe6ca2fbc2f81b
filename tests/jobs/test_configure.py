"""Changing the settings of an existing app."""

from collections.abc import AsyncIterator

import pytest

from forge import Config, Forge, InvalidPayload, InvalidValue, JobContext
from tests.apps import FAST, Work


@pytest.fixture
async def elsewhere() -> AsyncIterator[Forge]:
    """An application's own app, on a database that does not exist."""
    app = Forge(Config(), database_url="postgresql://nobody@127.0.0.1:1/nowhere")
    yield app
    await app.close()


async def test_an_existing_app_can_be_configured_for_a_test_database(
    elsewhere: Forge, database_url: str, work: Work
) -> None:
    @elsewhere.job
    async def echo(ctx: JobContext, input: dict) -> dict:
        return input

    settings = Config(worker=FAST, payload={"max_input": "1KB"})
    elsewhere.configure(settings, database_url=database_url)
    await work(elsewhere)

    assert await (await echo.dispatch({"n": 1})).result(timeout=10) == {"n": 1}
    with pytest.raises(InvalidPayload):
        await echo.dispatch({"text": 2000 * "x"})


async def test_configuring_an_open_app_closes_it_first(app: Forge, database_url: str) -> None:
    await (await app.session()).database()

    with pytest.raises(InvalidValue, match="close it first"):
        app.configure(Config())
    await app.close()
    app.configure(Config(), database_url=database_url)
