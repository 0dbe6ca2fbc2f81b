"""The verbs of an app that ask a worker to move a job."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from forge.core.wish import Options
from forge.requests import CANCEL, DELETE, REQUESTS, RESCHEDULE, RUN_NOW

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.handle import JobHandle


class Requesting:
    """Whoever may not move jobs asks for it by dispatching one of the built-in types."""

    async def cancel(
        self, job_id: UUID, *, reason: str | None = None, **options: "Unpack[Options]"
    ) -> "JobHandle":
        """Ask a worker to cancel a job, wherever it stands."""
        return await _ask(self, CANCEL, options, job_id=str(job_id), reason=reason)

    async def delete(self, job_id: UUID, **options: "Unpack[Options]") -> "JobHandle":
        """Ask a worker to give up, cancel or erase a job, according to where it stands."""
        return await _ask(self, DELETE, options, job_id=str(job_id))

    async def run_now(self, job_id: UUID, **options: "Unpack[Options]") -> "JobHandle":
        """Ask a worker to make a waiting job due at once."""
        return await _ask(self, RUN_NOW, options, job_id=str(job_id))

    async def reschedule(
        self, job_id: UUID, at: datetime, **options: "Unpack[Options]"
    ) -> "JobHandle":
        """Ask a worker to move a waiting job to another time."""
        return await _ask(self, RESCHEDULE, options, job_id=str(job_id), at=at.isoformat())


async def _ask(app: Requesting, name: str, options: Options, **input: Any) -> "JobHandle":
    return await cast("Forge", app).dispatch(REQUESTS[name], input, **options)
