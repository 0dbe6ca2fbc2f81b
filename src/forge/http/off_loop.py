"""Validates and redacts large values in a thread, so that the event loop is not blocked."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

from pydantic import TypeAdapter
from starlette.responses import Response

P = ParamSpec("P")
T = TypeVar("T")
# Bytes of JSON: smaller values take a millisecond or two, and a thread costs more.
THREAD_THRESHOLD = 16_384
JSON_COLUMNS = ("input", "output", "checkpoint", "meta", "payload", "edited_payload", "attempts")
# One thread: more would compete with the event loop for the interpreter lock.
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forge-large-values")


async def off_loop(size: int, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that handles `size` bytes of JSON, in the thread if that is much."""
    if size < THREAD_THRESHOLD:
        return act(*args, **kwargs)
    context = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREAD, lambda: context.run(act, *args, **kwargs))


async def answer_of(size: int, shown: object) -> Response:
    """Serialise a response of `size` bytes; the framework would do it on the event loop."""
    content = await off_loop(size, _serialise, shown)
    return Response(content, media_type="application/json")


def _serialise(shown: object) -> bytes:
    shape: Any = type(shown)
    return _adapter(shape).dump_json(shown)


@lru_cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def size_of(row: Mapping[str, Any]) -> int:
    """Return the bytes of JSON in a row."""
    return sum(len(text) for name in JSON_COLUMNS if isinstance(text := row.get(name), str))
