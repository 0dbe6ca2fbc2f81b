"""JSON that somebody writes on a command line."""

import json
from typing import Any

import click


def read_json(text: str, origin: str) -> Any:
    """Read JSON, or say where what is wrong came from."""
    try:
        return json.loads(text)
    # A number of thousands of digits is no JSON error, and brackets without end exhaust the stack.
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            f'{origin} is not JSON ({error}); write it as \'{{"name": "value"}}\''
        ) from None
