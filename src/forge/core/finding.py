"""What a check of the installation found: a code, a severity, one sentence, and what to do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

# `info` is on purpose, such as a pause; a `problem` makes `forge doctor` fail.
Severity = Literal["ok", "info", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    severity: Severity
    code: str
    message: str
    # What to do about it; None where nothing has to be done.
    action: str | None = None
    # What the message is made of, as JSON has it.
    facts: Mapping[str, Any] = field(default_factory=dict)


def ok(code: str, message: str, **facts: Any) -> Finding:
    return Finding("ok", code, message, None, facts)


def info(code: str, message: str, action: str, **facts: Any) -> Finding:
    return Finding("info", code, message, action, facts)


def warning(code: str, message: str, action: str, **facts: Any) -> Finding:
    return Finding("warning", code, message, action, facts)


def problem(code: str, message: str, action: str, **facts: Any) -> Finding:
    return Finding("problem", code, message, action, facts)


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are not ok, the problems first."""
    order = get_args(Severity)
    found = [finding for finding in findings if finding.severity != "ok"]
    return sorted(found, key=lambda finding: order.index(finding.severity), reverse=True)
