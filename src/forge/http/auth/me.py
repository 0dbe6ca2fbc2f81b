"""`GET /_api/me`: the caller, and the routes that the caller may call."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from forge.http.auth.access import Identity, Role, User
from forge.http.problems.problem import Problem
from forge.http.routes import RouteAccess, access_of

router = APIRouter(tags=["about"])


class MeOut(BaseModel):
    """A caller, and what the caller may do."""

    name: str
    roles: list[Role]
    tenant_id: int | None = Field(description="Null: an operator, who sees every tenant's rows.")
    read_only: bool = Field(
        description="Whether the caller may only read: by the role `viewer`, or because the server "
        "is read-only."
    )
    allowed: Annotated[
        list[str],
        Field(
            description="The routes that the caller may call, as method and path.",
            examples=[["GET /_api/jobs", "POST /_api/jobs/{job_id}/cancel"]],
        ),
    ]


@router.get("/_api/me", operation_id="get_me", response_model=MeOut)
async def me(request: Request, caller: User) -> MeOut:
    """Return the caller of this request: name, roles, tenant and the routes that it may call."""
    identity = caller.identity
    is_allowed = [
        access for access in access_of(request.app.routes) if _admits(access, request, identity)
    ]
    return MeOut(
        name=identity.name,
        roles=sorted(identity.roles),
        tenant_id=identity.tenant_id,
        read_only=identity.is_viewer or caller.app.config.server.read_only,
        allowed=[access.name for access in is_allowed],
    )


def _admits(access: RouteAccess, request: Request, identity: Identity) -> bool:
    if access.check is None:
        return True
    try:
        access.check.check(request, identity, access.method)
    except Problem:
        return False
    return True
