"""Jobs that return values that cannot be stored and raise errors that cannot be printed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from forge import JobContext, job


class NoText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    def __repr__(self) -> str:
        raise ValueError("no representation")


class ExitingText(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class WrongText(Exception):
    def __str__(self) -> str:
        return 17  # type: ignore[return-value]


class Base(BaseException):
    pass


class UnencodableName(Exception):
    __module__ = "no\0place\ud800"


def nested(depth: int) -> Any:
    value: Any = "the bottom"
    for _ in range(depth):
        value = [value]
    return value


def recursing() -> None:
    recursing()


def circular() -> BaseException:
    error = ValueError("caused by itself")
    error.__cause__ = RuntimeError("the other half")
    error.__cause__.__cause__ = error
    return error


VALUES: dict[str, Callable[[], Any]] = {
    "a NUL": lambda: {"text": "a\0b"},
    "a NUL in a key": lambda: {"a\0b": 1},
    "NaN": lambda: {"number": float("nan")},
    "Infinity": lambda: [float("inf")],
    "a lone surrogate": lambda: {"text": "\ud800"},
    "a lone surrogate in a key": lambda: {"\udfff": 1},
    "5000 levels": lambda: {"deep": nested(5000)},
    "10 MB": lambda: {"text": "x" * 10_000_000},
    "bytes": lambda: {"raw": b"\xff"},
    "a number of 5000 digits": lambda: {"number": 10**5000},
    "an object": lambda: {"object": object()},
}

ERRORS: dict[str, Callable[[], BaseException]] = {
    "text that raises": NoText,
    "text that exits": ExitingText,
    "text that is a number": WrongText,
    "a base exception": lambda: Base("below Exception"),
    "SystemExit": lambda: SystemExit(1),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "StopIteration": lambda: StopIteration("next() found nothing"),
    "StopAsyncIteration": StopAsyncIteration,
    "CancelledError": asyncio.CancelledError,
    "a group": lambda: ExceptionGroup("several", [ValueError("one"), NoText()]),
    "a group of base exceptions": lambda: BaseExceptionGroup("worse", [KeyboardInterrupt()]),
    "NUL and surrogates in the text": lambda: ValueError("a\0b\ud800c"),
    "10 MB of text": lambda: ValueError("x" * 10_000_000),
    "a circle of causes": circular,
    "a module name that cannot be encoded": lambda: UnencodableName("odd module name"),
}


@job(max_attempts=1)
async def returning(ctx: JobContext, input: dict[str, Any]) -> Any:
    return VALUES[input["what"]]()


@job(max_attempts=1)
def returning_in_thread(ctx: JobContext, input: dict[str, Any]) -> Any:
    return VALUES[input["what"]]()


@job(max_attempts=1, isolation="process")
def returning_in_process(ctx: JobContext, input: dict[str, Any]) -> Any:
    return VALUES[input["what"]]()


@job(max_attempts=1)
async def raising(ctx: JobContext, input: dict[str, Any]) -> None:
    raise ERRORS[input["what"]]()


@job(max_attempts=1)
def raising_in_thread(ctx: JobContext, input: dict[str, Any]) -> None:
    raise ERRORS[input["what"]]()


@job(max_attempts=1, isolation="process")
def raising_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    raise ERRORS[input["what"]]()


@job(max_attempts=1)
async def recursing_endlessly(ctx: JobContext) -> None:
    recursing()


@job
async def echoing(ctx: JobContext, input: dict[str, Any]) -> Any:
    return input["value"]


@job
async def noting(ctx: JobContext, input: dict[str, Any]) -> None:
    """Report progress with text that PostgreSQL does not accept."""
    ctx.progress(50, "a\0b\ud800c")
