"""Counts the work that code does, where times would be unreliable."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def counted_calls(*names: str, threads: bool = True) -> Iterator[Counter[str]]:
    """Count calls of Python and C functions by name, in this thread and those it starts.

    Without names every call is counted; without `threads` those of this thread alone.
    """
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            name = frame.f_code.co_name
        elif event == "c_call":
            name = called.__name__
        else:
            return
        if not names or name in names:
            calls[name] += 1

    before = sys.getprofile()
    if threads:
        threading.setprofile(count)
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
