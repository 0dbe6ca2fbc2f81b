"""The trace that a request belongs to travels with the jobs that it asks for."""

from starlette.requests import Request

from forge.core.trace_context import read_traceparent
from forge.core.wish import Options
from forge.telemetry.trace_source import traceparent_for


def sent_with(request: Request) -> str | None:
    """Return the trace that a caller says its request belongs to."""
    sent = read_traceparent(request.headers.get("traceparent"))
    return None if sent is None else str(sent)


def traceparent_of(request: Request, job_type: str) -> str | None:
    """Return what a job that a request asks for carries along."""
    return traceparent_for(job_type, sent_with(request))


def in_trace(request: Request, job_type: str, options: Options) -> Options:
    """Add the trace of a request to what is asked for."""
    found = traceparent_of(request, job_type)
    return options if found is None else {**options, "traceparent": found}
