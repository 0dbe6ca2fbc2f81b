"""A payload with its envelope, and every way to dispatch it."""

import asyncio
import json
from typing import Any
from uuid import UUID

import asyncpg
import psycopg

from forge import Forge, InvalidPayload, JobDefinition
from forge.store import job_types

CORRELATION = UUID("550e8400-e29b-41d4-a716-446655440000")
ENVELOPE: dict[str, Any] = {
    "tenant_id": 123,
    "correlation_id": str(CORRELATION),
    "idempotency_key": "email_fetch_conn_456_msg_789",
}
PAYLOAD = ENVELOPE | {"connection_id": 456, "external_message_id": "msg_789"}
OPTIONS: dict[str, Any] = {
    "tenant_id": 123,
    "correlation_id": CORRELATION,
    "idempotency_key": "email_fetch_conn_456_msg_789",
}
Fetch = JobDefinition[Any, Any]
WAYS = ["one", "many", "conn", "sync", "sync conn", "elsewhere", "sql"]


async def register_types(app: Forge) -> None:
    """Register the app's types in the database, so that others can dispatch them by name."""
    database = await (await app.session()).database()
    types = [own.job_type for own in app.definitions.values()]
    await database.run(job_types.register(types))


async def only_job(psql: Any) -> dict[str, Any]:
    """Return the columns of the only job."""
    row = dict(await psql.fetchrow("select * from forge_jobs"))
    return row | {"input": json.loads(row["input"])}


async def dispatch(way: str, app: Forge, url: str, payload: Any, **options: Any) -> None:
    """Dispatch `fetch` in one of WAYS; SQL errors are raised as InvalidPayload."""
    match way:
        case "one":
            await app.dispatch("fetch", payload, **options)
        case "many":
            key = {k: v for k, v in options.items() if k == "idempotency_key"}
            rest = {k: v for k, v in options.items() if k != "idempotency_key"}
            await app.dispatch_many("fetch", [payload | key], **rest)
        case "conn":
            conn = await asyncpg.connect(url)
            async with conn.transaction():
                await app.dispatch("fetch", payload, conn=conn, **options)
            await conn.close()
        case "sync":
            await asyncio.to_thread(lambda: app.sync.dispatch("fetch", payload, **options))
        case "sync conn":
            with psycopg.connect(url) as borrowed:
                app.sync.dispatch("fetch", payload, conn=borrowed, **options)
        case "elsewhere":
            async with Forge(database_url=url) as other:
                await other.dispatch("fetch", payload, **options)
        case "sql":
            conn = await asyncpg.connect(url)
            names = "".join(f", {name} => ${n}" for n, name in enumerate(options, 2))
            try:
                await conn.execute(
                    f"select forge_dispatch('fetch', $1::text::jsonb{names})",
                    json.dumps(payload),
                    *options.values(),
                )
            except asyncpg.PostgresError as error:
                raise InvalidPayload(str(error)) from error
            finally:
                await conn.close()
        case _:
            raise ValueError(f"unknown way to dispatch: {way}")
