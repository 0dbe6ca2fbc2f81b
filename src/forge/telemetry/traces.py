"""OpenTelemetry traces: the spans of a dispatch and of its attempts are in one trace."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from forge.core.errors import ConfigError
from forge.core.new_job import DispatchOptions
from forge.core.outcome import Failure
from forge.core.payload import decode_if_possible
from forge.core.sensitive.redact import redact_text, secrets_in
from forge.core.signals import Snooze
from forge.core.trace_context import TraceContext, read_traceparent

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

NAME = "forge"

# Returns the `traceparent` of a dispatched job, from its type and the caller's `traceparent`.
# There is one per process, because OpenTelemetry has one tracer provider per process.
TraceSource = Callable[[str, str | None], str | None]
_sources: list[TraceSource] = []


def trace(app: Any, *, links: bool = False) -> None:
    """Trace the dispatches and attempts of an app, with the process's tracer provider.

    The span of an attempt is a child of the span of the dispatch; with `links` it starts its own
    trace that links to the dispatch, which suits jobs that run much later.
    """
    tracer = _tracer()
    set_source(lambda job_type, sent: _dispatching(tracer, job_type, sent))

    async def in_span(ctx: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
        from opentelemetry.trace import Link, SpanKind

        came_from = _remote(ctx.traceparent)
        linked = [Link(came_from)] if links and came_from is not None else []
        with tracer.start_as_current_span(
            f"process {ctx.job_type}",
            context=_parent(None if links else came_from),
            kind=SpanKind.CONSUMER,
            attributes=_attributes(ctx),
            links=linked,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await call_next()
            except Snooze:
                span.set_attribute("forge.outcome", "snoozed")
                raise
            except BaseException as error:
                _record(
                    span,
                    app.classifier.failure(error),
                    secrets_in(decode_if_possible(ctx.job.input)),
                )
                raise

    app.middleware(in_span)


def set_source(source: TraceSource | None) -> None:
    """Set where the `traceparent` of dispatched jobs comes from; None for no tracing."""
    _sources[:] = [] if source is None else [source]


def traceparent_for(job_type: str, sent: str | None = None) -> str | None:
    """Return the `traceparent` of a job: of this process if it traces, else the one sent."""
    return _sources[0](job_type, sent) if _sources else sent


def traced(job_type: str, options: DispatchOptions, sent: str | None = None) -> DispatchOptions:
    """Add the trace that a dispatch belongs to, unless the options name one."""
    if "traceparent" in options or not (_sources or sent):
        return options
    found = traceparent_for(job_type, sent)
    return options if found is None else {**options, "traceparent": found}


def _record(span: "Span", failure: Failure, known: set[str]) -> None:
    """Record the error of an attempt, with secrets redacted."""
    from opentelemetry.trace import Status, StatusCode

    span.add_event(
        "exception",
        {
            "exception.type": failure.exception,
            "exception.message": redact_text(failure.message, known),
            "exception.stacktrace": redact_text(failure.trace, known),
        },
    )
    span.set_status(Status(StatusCode.ERROR, failure.exception))


def _tracer() -> "Tracer":
    try:
        from opentelemetry import trace as opentelemetry
    except ImportError:
        raise ConfigError(
            "OpenTelemetry is not installed; run `pip install 'forge-jobs[otel]'`"
        ) from None
    return opentelemetry.get_tracer(NAME)


def _dispatching(tracer: "Tracer", job_type: str, sent: str | None) -> str | None:
    """Create the span of a dispatch, and return the `traceparent` of its job.

    It is a child of the current span, or without one, of the span that the caller sent.
    """
    from opentelemetry.trace import SpanKind, get_current_span

    is_traced = get_current_span().get_span_context().is_valid
    with tracer.start_as_current_span(
        f"dispatch {job_type}",
        context=None if is_traced or sent is None else _parent(_remote(sent)),
        kind=SpanKind.PRODUCER,
        attributes={"messaging.system": "forge", "messaging.destination.name": job_type},
    ) as span:
        found = span.get_span_context()
    if not found.is_valid:
        return None
    return str(
        TraceContext(
            f"{found.trace_id:032x}", f"{found.span_id:016x}", f"{int(found.trace_flags):02x}"
        )
    )


def _remote(traceparent: str | None) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    found = read_traceparent(traceparent)
    if found is None:
        return None
    return SpanContext(
        int(found.trace_id, 16),
        int(found.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(found.flags, 16)),
    )


def _parent(remote: Any) -> "Context":
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    # An attempt without a parent must not become a child of the worker's current span.
    return Context() if remote is None else set_span_in_context(NonRecordingSpan(remote), Context())


def _attributes(ctx: Any) -> dict[str, Any]:
    attributes = {
        "messaging.system": "forge",
        "messaging.operation.type": "process",
        "messaging.destination.name": ctx.job_type,
        "messaging.message.id": str(ctx.job_id),
        "messaging.message.conversation_id": None
        if ctx.correlation_id is None
        else str(ctx.correlation_id),
        "forge.attempt": ctx.attempt,
        "forge.tenant_id": ctx.tenant_id,
    }
    return {name: value for name, value in attributes.items() if value is not None}
