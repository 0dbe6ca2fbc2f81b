"""A table of users to write to, and a job that greets them."""

from typing import Any

import pytest
from pydantic import BaseModel

from forge import Forge, JobContext

ADD = "insert into users (email) values ($1) returning id"


class User(BaseModel):
    id: int
    email: str


@pytest.fixture(autouse=True)
async def users(psql: Any) -> None:
    await psql.execute("create table users (id serial primary key, email text unique)")


@pytest.fixture
def greeted(app: Forge) -> list[Any]:
    """The inputs of the job `welcome`, and who dispatched it."""
    seen: list[Any] = []

    @app.job
    async def welcome(ctx: JobContext, input: dict) -> None:
        seen.append((input["user"], ctx.auth, ctx.tenant_id, ctx.correlation_id))

    return seen


async def written(psql: Any) -> tuple[int, int]:
    """Return the number of users and the number of jobs."""
    users = await psql.fetchval("select count(*) from users")
    return users, await psql.fetchval("select count(*) from forge_jobs")


async def open_transactions(psql: Any) -> int:
    found: int = await psql.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid() and xact_start is not null and backend_type = 'client backend'"
    )
    return found


async def none_open(psql: Any) -> bool:
    """Whether no other connection is inside a transaction."""
    return await open_transactions(psql) == 0
