"""Jobs and helpers for the tests of the API."""

from typing import Any
from uuid import UUID

import httpx
from pydantic import BaseModel, computed_field

from forge import Forge, JobContext


class Export(BaseModel):
    """Input of an export."""

    format: str
    rows: int = 1


class Exported(BaseModel):
    """Output of an export."""

    file: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def extension(self) -> str:
        return self.file.rpartition(".")[2]


def add_jobs(app: Forge) -> None:
    """Give an app the jobs of these tests."""

    @app.job
    async def export_users(ctx: JobContext, input: Export) -> Exported:
        """Export the users of a tenant.

        As one file.
        """
        return Exported(file=f"users.{input.format}")

    @app.job(idempotent="input.payment_id")
    async def charge(ctx: JobContext, input: dict) -> None: ...

    @app.job(priority="high", queue="mail", max_attempts=7)
    async def send_mail(ctx: JobContext, input: dict) -> None: ...


async def dispatched(
    http: httpx.AsyncClient, headers: dict[str, str], job_type: str = "send_mail", **body: Any
) -> UUID:
    """Dispatch a job over HTTP and return its id."""
    answer = await http.post(f"/_api/jobs/{job_type}/dispatch", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    return UUID(answer.json()["job_id"])


def code(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


def paths(answer: httpx.Response) -> list[str]:
    """Return the paths of the faults of a request."""
    assert code(answer) == (422, "invalid")
    return [fault["path"] for fault in answer.json()["errors"]]
