"""Errors about an invalid database URL do not quote its password."""

import pytest

from forge import Config, ConfigError, Forge, Worker

UNREADABLE = [
    "postgresql://forge:hunter2/a@db.internal/shop",
    "postgresql://forge:hunter2@db.internal:hunter2/shop",
    "postgresql://forge:hunter2@[::1/shop",
]


@pytest.mark.parametrize("url", UNREADABLE)
async def test_an_invalid_url_error_shows_the_format(url: str) -> None:
    app = Forge(Config(), database_url=url)

    for act in (app.dispatch(app.job(ping)), Worker(app).run(), app.migrate()):
        with pytest.raises(ConfigError, match="write it as postgresql://user") as refused:
            await act

        assert "hunter2" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__
    await app.close()


async def ping(ctx: object) -> None: ...
