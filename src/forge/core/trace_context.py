"""W3C trace context: parses the `traceparent` that links spans of several processes."""

import re
from typing import NamedTuple

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceContext(NamedTuple):
    """The ids of a trace and of a span in it."""

    trace_id: str
    span_id: str
    flags: str = "01"

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def read_traceparent(text: str | None) -> TraceContext | None:
    """Parse a `traceparent`; None if it is invalid, which the standard says to ignore.

    >>> read_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").span_id
    '00f067aa0ba902b7'
    """
    found = _TRACEPARENT.fullmatch(text.strip()) if text else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    is_future = version != "00"
    if version == "ff" or (more and not is_future) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return TraceContext(trace_id, span_id, flags)


def valid_traceparent(header: str | None) -> str | None:
    """Return a `traceparent` header as it is stored; None if it is missing or invalid."""
    found = read_traceparent(header)
    return None if found is None else str(found)
