"""Pages of jobs over HTTP: the caller's tenant, the cursor and the response."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from uuid import UUID

from forge.core.job_filter import JobFilter
from forge.http.auth.access import Caller
from forge.http.off_loop import off_loop
from forge.http.problems.problem import Fault, invalid
from forge.jobs.search import FoundJobs, JobReader, JobSearch, find_jobs


async def find_page(caller: Caller, wanted: JobSearch, limit: int, cursor: str | None) -> FoundJobs:
    """Return a page of the jobs that the caller can read."""
    reader = JobReader(caller.run, caller.run_over_all, caller.app.catalog, off_loop)
    after = None if cursor is None else read_cursor(cursor)
    return await find_jobs(reader, wanted, limit, after)


def restrict(caller: Caller, job_filter: JobFilter) -> JobFilter:
    """Limit a filter to the caller's tenant; refuse another one."""
    return replace(job_filter, tenant_id=caller.tenant_for(job_filter.tenant_id))


def write_cursor(job_id: UUID) -> str:
    """Return an opaque cursor after a job."""
    return urlsafe_b64encode(job_id.bytes).rstrip(b"=").decode()


def read_cursor(text: str) -> UUID:
    """Parse a cursor, or raise a 422."""
    try:
        job_id = UUID(bytes=urlsafe_b64decode(f"{text}==".encode("ascii")))
    except ValueError:
        job_id = None
    if job_id is None or write_cursor(job_id) != text:
        fault = Fault(
            "query.cursor", "is not a next_cursor; leave it out to start from the beginning"
        )
        raise invalid([fault])
    return job_id
