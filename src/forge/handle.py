"""What dispatch returns: a job to wait for, follow or cancel."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.errors import JobFailed, UndecodablePayload
from forge.core.lifecycle import Status
from forge.core.record import JobRecord
from forge.watch import Timeout

if TYPE_CHECKING:
    from forge.app import Forge


class JobHandle:
    """One dispatched job."""

    __slots__ = ("_app", "deduplicated", "id")

    def __init__(self, app: "Forge", job_id: UUID, *, deduplicated: bool = False) -> None:
        self._app = app
        self.id = job_id
        self.deduplicated = deduplicated

    async def get(self) -> JobRecord:
        """Return the job as it stands now."""
        return await self._app.get(self.id)

    async def updates(self) -> AsyncGenerator[JobRecord, None]:
        """Yield the job as it stands, then at each change, until it is final."""
        watcher = await self._app.watcher()
        async for record in watcher.follow(self.id):
            yield record

    async def result(self, timeout: Timeout = None) -> Any:
        """Wait until the job is final and return its output, or raise JobFailed."""
        watcher = await self._app.watcher()
        record = await watcher.final(self.id, timeout)
        if "output" in record.undecodable:
            raise UndecodablePayload(
                f"the output of {record.job_type} {self.id} cannot be read as JSON; "
                "read it in SQL and correct it where it was written"
            )
        if record.status is Status.COMPLETED:
            return record.output
        reason = record.last_error or "no error was recorded"
        raise JobFailed(
            f"{record.job_type} {self.id} ended as {record.status}: {reason}; "
            f"`forge jobs show {self.id}` tells more"
        )

    async def cancel(self, reason: str | None = None) -> "JobHandle":
        """Ask a worker to cancel the job; returns the handle of that request."""
        return await self._app.cancel(self.id, reason=reason)

    def __repr__(self) -> str:
        return f"<forge.JobHandle {self.id}>"
