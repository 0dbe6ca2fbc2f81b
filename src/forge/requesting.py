"""The verbs of an app that ask a worker to move a job."""

from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from forge.core.wish import Options
from forge.requests import Asked, cancelling, deleting, rescheduling, running_now

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.handle import JobHandle


class Requesting:
    """Whoever may not move jobs asks for it by dispatching one of the built-in types."""

    async def cancel(
        self, job_id: UUID | str, *, reason: str | None = None, **options: "Unpack[Options]"
    ) -> "JobHandle":
        """Ask a worker to cancel a job, wherever it stands."""
        return await _ask(self, cancelling(job_id, reason), options)

    async def delete(self, job_id: UUID | str, **options: "Unpack[Options]") -> "JobHandle":
        """Ask a worker to give up, cancel or erase a job, according to where it stands."""
        return await _ask(self, deleting(job_id), options)

    async def run_now(self, job_id: UUID | str, **options: "Unpack[Options]") -> "JobHandle":
        """Ask a worker to make a waiting job due at once."""
        return await _ask(self, running_now(job_id), options)

    async def reschedule(
        self, job_id: UUID | str, at: datetime, **options: "Unpack[Options]"
    ) -> "JobHandle":
        """Ask a worker to move a waiting job to another time."""
        return await _ask(self, rescheduling(job_id, at), options)


async def _ask(app: Requesting, asked: Asked, options: Options) -> "JobHandle":
    return await cast("Forge", app).dispatch(*asked, **options)
