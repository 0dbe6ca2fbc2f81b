"""Paths into JSON values, such as `$.user.tokens[0]`."""

import json
import re

Path = tuple[str | int, ...]
LONGEST_SHOWN = 60


def step_text(step: str | int) -> str:
    """Write one step of a path: a key, or a place in a list.

    >>> step_text("user"), step_text(0), step_text("first name")
    ('.user', '[0]', '["first name"]')
    """
    if isinstance(step, int):
        return f"[{step}]"
    shown = step if len(step) <= LONGEST_SHOWN else step[:LONGEST_SHOWN] + "…"
    return f".{shown}" if _NAME.fullmatch(shown) else f"[{json.dumps(shown)}]"


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
