"""Checking and redacting large values in a thread, so that the event loop goes on meanwhile."""

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
# Smaller values take a millisecond or two; handing them to a thread costs more than it saves.
HEAVY = 16_384
JSON = ("input", "output", "checkpoint", "meta", "payload", "edited_payload", "attempts")
# One thread: several would wait for the same interpreter lock, and the loop for all of them.
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forge-large-values")


async def off_loop(size: int, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that handles so many bytes of JSON: here, or in the thread if it is heavy."""
    if size < HEAVY:
        return act(*args, **kwargs)
    context = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREAD, lambda: context.run(act, *args, **kwargs))


async def answer_of(size: int, shown: object) -> Response:
    """Write an answer with so many bytes of JSON; the framework would do it on the loop."""
    content = await off_loop(size, _written, shown)
    return Response(content, media_type="application/json")


def _written(shown: object) -> bytes:
    kind: Any = type(shown)
    return _adapter(kind).dump_json(shown)


@lru_cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def size_of(row: Mapping[str, Any]) -> int:
    """Return how much JSON a row holds, as the database wrote it."""
    return sum(len(text) for name in JSON if isinstance(text := row.get(name), str))
