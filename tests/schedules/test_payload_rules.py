"""Payloads and types of schedules: held to the rules that jobs without a category have."""

import logging
from typing import Any

import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, ScheduleContext, UnknownJobType
from tests.apps import MakeApp, Work


class Feed(BaseModel):
    feed_id: int


def declare(app: Forge) -> None:
    @app.schedule("fetch_feed", every="1h")
    async def fetch_feed(ctx: ScheduleContext, payload: Feed) -> None: ...

    @app.schedule("sweep", every="1h")
    async def sweep(ctx: ScheduleContext, payload: dict[str, Any]) -> None: ...


async def test_a_type_that_no_process_registered_is_refused(app: Forge, psql: Any) -> None:
    with pytest.raises(UnknownJobType, match="unknown schedule type 'fetch_fed'"):
        await app.schedules.ensure("fetch_fed", "1", {"feed_id": 1})

    assert await psql.fetchval("select count(*) from forge_schedules") == 0


async def test_a_type_is_known_elsewhere_once_a_worker_has_it(
    make_app: MakeApp, work: Work
) -> None:
    app, elsewhere = make_app(), make_app()
    declare(app)
    await work(app)

    made = await elsewhere.schedules.ensure("fetch_feed", "1", {"feed_id": 1})
    with pytest.raises(InvalidPayload, match=r"\$\.feed_id"):
        await elsewhere.schedules.ensure("fetch_feed", "2", {"feed_id": "x"})

    assert made.type == "fetch_feed"


async def test_a_schedule_type_is_no_job_type(make_app: MakeApp, work: Work) -> None:
    app, elsewhere = make_app(), make_app()
    declare(app)
    await work(app)

    with pytest.raises(UnknownJobType):
        await elsewhere.dispatch("fetch_feed", {"feed_id": 1})


async def test_sensitive_content_is_warned_of(app: Forge, caplog: pytest.LogCaptureFixture) -> None:
    declare(app)

    with caplog.at_level(logging.WARNING, "forge"):
        await app.schedules.ensure("sweep", "1", {"user": {"password": "hunter2!"}})

    (warning,) = [r.getMessage() for r in caplog.records if r.name == "forge"]
    assert "$.user.password has the name of a secret" in warning
    assert "hunter2!" not in warning


async def test_a_large_payload_is_warned_of(app: Forge, caplog: pytest.LogCaptureFixture) -> None:
    declare(app)

    with caplog.at_level(logging.WARNING, "forge"):
        await app.schedules.ensure("sweep", "1", {"numbers": list(range(4000))})

    assert "larger than 10,240 bytes" in caplog.text


async def test_the_limit_of_the_configuration_holds(app: Forge) -> None:
    declare(app)

    with pytest.raises(InvalidPayload, match=r"the limit is 262,144 bytes"):
        await app.schedules.ensure("sweep", "1", {"numbers": list(range(100_000))})
