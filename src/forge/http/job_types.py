"""The job types: what each is like when nothing else is said, and what it takes and returns."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from forge.core.payload import decode_if_possible
from forge.http.access import User
from forge.http.shapes import Items, JobTypeOut
from forge.store import job_types
from forge.store.statement import Row, Rows, Statement
from forge.types import type_rows

if TYPE_CHECKING:
    from forge.app import Forge

Run = Callable[[Statement[Rows]], Awaitable[Rows]]
router = APIRouter(tags=["job types"])


@router.get("/_api/job_types", operation_id="list_job_types", response_model=Items[JobTypeOut])
async def list_job_types(caller: User) -> Any:
    """List the types that may be dispatched, by name."""
    return {"items": await known_types(caller.app, caller.run)}


async def known_types(app: "Forge", run: Run) -> list[dict[str, Any]]:
    """Return the types that anybody registered, this app's own as its code has them."""
    found = {row["name"]: _shown(row) for row in await run(job_types.listed())}
    for own in type_rows(app.definitions.values()):
        found[own.name] = _shown(own._asdict())
    return [found[name] for name in sorted(found)]


def _shown(row: Row) -> dict[str, Any]:
    shown = dict(row)
    for name in ("requires", "retry", "input_schema", "output_schema"):
        if isinstance(shown[name], str):
            shown[name] = decode_if_possible(shown[name])
    return shown
