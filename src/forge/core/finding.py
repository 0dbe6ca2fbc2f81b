"""What a check of the installation found: level, message and advice."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    level: Level
    check: str
    message: str
    advice: str | None = None


def ok(check: str, message: str) -> Finding:
    return Finding("ok", check, message)


def warning(check: str, message: str, advice: str) -> Finding:
    return Finding("warning", check, message, advice)


def problem(check: str, message: str, advice: str) -> Finding:
    return Finding("problem", check, message, advice)
