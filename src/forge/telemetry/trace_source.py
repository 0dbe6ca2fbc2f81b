"""Where a dispatch learns which trace it belongs to, if anybody traces in this process."""

from collections.abc import Callable

from forge.core.wish import Options

# Given the type of a job that is dispatched and the trace that whoever asks for it sent along, says
# the job's `traceparent`. Tracing is the process's, not an app's: there is one tracer provider.
Source = Callable[[str, str | None], str | None]
_sources: list[Source] = []


def set_source(source: Source | None) -> None:
    """Say where the trace of a dispatch comes from; None for nowhere."""
    _sources[:] = [] if source is None else [source]


def traceparent_for(job_type: str, sent: str | None = None) -> str | None:
    """Return what a job carries along: of this process where it is traced, else what was sent."""
    return _sources[0](job_type, sent) if _sources else sent


def traced(job_type: str, options: Options) -> Options:
    """Add the trace that a dispatch belongs to, unless the caller names one."""
    if not _sources or "traceparent" in options:
        return options
    found = traceparent_for(job_type)
    return options if found is None else {**options, "traceparent": found}
