"""Other jobs of the firms, one for each category that app.py does not cover."""

from pydantic import BaseModel

import forge
from forge import JobContext, Retry, Retryable

COUNT_NOTICES = "select count(*) from notices where tenant_id = $1"
DELETE_OLD_NOTICES = """
    with gone as (
        delete from notices where tenant_id = $1 and created_at < now() - interval '1 year'
        returning id)
    select count(*) from gone
"""


class Period(BaseModel):
    """A period of a recurring task."""

    recurrence_id: str
    period_id: str


class Step(BaseModel):
    """A step of a workflow."""

    execution_id: str
    step_id: str


class Document(BaseModel):
    """A reference to a document. The payload does not contain its content."""

    document_id: str


@forge.job(category="recurrence")
async def open_period(ctx: JobContext, period: Period) -> str:
    """Open the next period of a retainer."""
    return f"{period.recurrence_id}: {period.period_id} is open"


@forge.job(category="orchestration")
async def run_step(ctx: JobContext, step: Step) -> str:
    """Run one step of opening a case."""
    return f"{step.execution_id}: {step.step_id} is done"


@forge.job(category="documents", retry=Retry(max_attempts=3, backoff="fixed", max_backoff="200ms"))
async def convert_document(ctx: JobContext, document: Document) -> None:
    """Convert a document. The converter is unavailable, so every attempt fails."""
    raise Retryable(f"The converter did not respond for {document.document_id}.")


@forge.job(category="export")
async def export_notices(ctx: JobContext) -> int:
    """Export the notices of a firm. Returns their number."""
    return int(await ctx.db.fetchval(COUNT_NOTICES, ctx.tenant_id))


@forge.job(category="maintenance")
async def delete_old_notices(ctx: JobContext) -> int:
    """Delete notices that are older than a year."""
    return int(await ctx.db.fetchval(DELETE_OLD_NOTICES, ctx.tenant_id))


JOBS = (open_period, run_step, convert_document, export_notices, delete_old_notices)
