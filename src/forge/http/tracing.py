"""The trace that a request belongs to travels with the job that it asks for."""

from starlette.requests import Request

from forge.core.trace_context import read_traceparent
from forge.core.wish import Options
from forge.telemetry.trace_source import current_traceparent


def traceparent_of(request: Request, job_type: str) -> str | None:
    """Return the trace of this process where it is traced, else what the caller sent."""
    if (found := current_traceparent(job_type)) is not None:
        return found
    sent = read_traceparent(request.headers.get("traceparent"))
    return None if sent is None else str(sent)


def in_trace(request: Request, job_type: str, options: Options) -> Options:
    """Add the trace of a request to what is asked for."""
    found = traceparent_of(request, job_type)
    return options if found is None else {**options, "traceparent": found}
