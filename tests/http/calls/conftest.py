"""A mutation that registers users, and the job it dispatches."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from forge import Forge, JobContext, MutationContext, Rejected

ADD = "insert into users (email) values ($1) returning id"


class Address(BaseModel):
    street: str


class Registration(BaseModel):
    email: str = Field(min_length=3)
    address: Address | None = None


class User(BaseModel):
    id: int
    email: str


@pytest.fixture(autouse=True)
async def users(psql: Any, api_url: str) -> None:
    """A table of the user's own, with the grants of the howto."""
    await psql.execute(
        "create table users (id bigint generated always as identity, email text unique);"
        "grant select, insert on users to forge_api"
    )


@pytest.fixture(autouse=True)
def welcome(app: Forge) -> list[Any]:
    """The inputs and callers of the job that greets new users."""
    seen: list[Any] = []

    @app.job
    async def welcome(ctx: JobContext, input: dict) -> None:
        seen.append((input, ctx.auth, ctx.tenant_id, ctx.correlation_id))

    @app.mutation
    async def register_user(ctx: MutationContext, input: Registration) -> User:
        """Register a user."""
        if await ctx.db.fetchval("select true from users where email = $1", input.email):
            raise Rejected(
                "the address is taken", code="email_taken", faults={"$.email": "is taken"}
            )
        user = await ctx.db.fetchval(ADD, input.email)
        await ctx.dispatch_job("welcome", {"user": user})
        return User(id=user, email=input.email)

    return seen
