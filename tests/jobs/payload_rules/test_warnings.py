"""Types without a category: doubtful payload content causes one warning."""

import json
import logging
from typing import Any

import psycopg
import pytest

from forge import Forge, JobContext
from forge.core.events import PayloadDoubted
from tests.jobs.payload_rules.ways import register_types


@pytest.fixture
def plain(app: Forge) -> Forge:
    @app.job
    async def plain(ctx: JobContext, input: dict[str, Any]) -> None: ...

    return app


async def test_sensitive_content_is_warned_of_once_and_dispatched(
    plain: Forge, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Any] = []
    plain.events.listeners.append(events.append)

    with caplog.at_level(logging.WARNING, "forge"):
        for _ in range(3):
            handle = await plain.dispatch("plain", {"user": {"password": "hunter2!"}})

    (warning,) = [r.getMessage() for r in caplog.records if r.name == "forge"]
    assert "$.user.password has the name of a secret" in warning
    assert "hunter2!" not in warning
    assert [(type(event), event.path) for event in events] == [(PayloadDoubted, "$.user.password")]
    assert (await handle.get()).input == {"user": {"password": "hunter2!"}}


@pytest.mark.parametrize("way", ["one", "many", "keyed"])
async def test_a_large_payload_causes_a_warning(
    plain: Forge, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    large = {"numbers": list(range(4000))}

    with caplog.at_level(logging.WARNING, "forge"):
        if way == "many":
            await plain.dispatch_many("plain", [{}, large])
        else:
            options: Any = {"idempotency_key": "k"} if way == "keyed" else {}
            await plain.dispatch("plain", large, **options)

    (warning,) = [r.getMessage() for r in caplog.records if r.name == "forge"]
    assert "larger than 10,240 bytes" in warning


async def test_only_a_sample_of_a_large_batch_is_checked(
    plain: Forge, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "forge"):
        await plain.dispatch_many("plain", ({"n": n} for n in range(1000)))
        await plain.dispatch_many("plain", ({"apiKey": "x"} for n in range(1000)))

    (warning,) = [r.getMessage() for r in caplog.records if r.name == "forge"]
    assert "$.apiKey" in warning


async def test_content_that_a_type_allows_causes_no_warning(
    app: Forge, caplog: pytest.LogCaptureFixture
) -> None:
    @app.job(allow_sensitive=["page_token"])
    async def walk(ctx: JobContext, input: dict[str, Any]) -> None: ...

    with caplog.at_level(logging.WARNING, "forge"):
        await walk.dispatch({"page_token": "abc"})

    assert not [r for r in caplog.records if r.name == "forge"]


async def test_sql_warns_of_a_large_payload_too(plain: Forge, database_url: str) -> None:
    await register_types(plain)
    warned: list[str] = []

    with psycopg.connect(database_url) as conn:
        conn.add_notice_handler(lambda notice: warned.append(f"{notice.severity} {notice}"))
        for count in (10, 10_000):
            conn.execute(
                "select forge_dispatch('plain', %s)",
                (json.dumps({"numbers": list(range(count))}),),
            )

    (warning,) = [f"{each}" for each in warned]
    assert warning.startswith("WARNING")


async def test_size_is_counted_in_bytes(plain: Forge, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "forge"):
        await plain.dispatch("plain", {"names": ["ä" * 900] * 10})

    assert "larger than 10,240 bytes" in caplog.text
