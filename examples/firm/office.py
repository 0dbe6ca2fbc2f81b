"""The firms' other jobs, one of each category that app.py does not have."""

from pydantic import BaseModel

import forge
from forge import JobContext, Retry, Retryable

COUNT_NOTICES = "select count(*) from notices where tenant_id = $1"
FORGET_NOTICES = """
    with gone as (
        delete from notices where tenant_id = $1 and created_at < now() - interval '1 year'
        returning id)
    select count(*) from gone
"""


class Period(BaseModel):
    """A period of something that recurs."""

    recurrence_id: str
    period_id: str


class Step(BaseModel):
    """A step of a longer piece of work."""

    execution_id: str
    step_id: str


class Document(BaseModel):
    """A document by its id; what it says stays where it is."""

    document_id: str


@forge.job(category="recurrence")
async def open_period(ctx: JobContext, period: Period) -> str:
    """Open the next period of a retainer."""
    return f"{period.recurrence_id}: {period.period_id} is open"


@forge.job(category="orchestration")
async def run_step(ctx: JobContext, step: Step) -> str:
    """Carry out one step of opening a case."""
    return f"{step.execution_id}: {step.step_id} is done"


@forge.job(category="documents", retry=Retry(max_attempts=3, backoff="fixed", max_backoff="200ms"))
async def convert_document(ctx: JobContext, document: Document) -> None:
    """Convert a document, with a converter that is away: every attempt fails."""
    raise Retryable(f"the converter does not answer for {document.document_id}")


@forge.job(category="export")
async def export_notices(ctx: JobContext) -> int:
    """Export the notices of a firm; returns how many there are."""
    return int(await ctx.db.fetchval(COUNT_NOTICES, ctx.tenant_id))


@forge.job(category="maintenance")
async def forget_notices(ctx: JobContext) -> int:
    """Delete notices that are older than a year."""
    return int(await ctx.db.fetchval(FORGET_NOTICES, ctx.tenant_id))


JOBS = (open_period, run_step, convert_document, export_notices, forget_notices)
