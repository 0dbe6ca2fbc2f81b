"""What a route says of itself in the OpenAPI document beside its answer."""

from typing import Any

from forge.http.problem import KINDS, MEDIA_TYPE

PROBLEM = {"$ref": "#/components/schemas/Problem"}


def problems(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the problems with these codes as a route's `responses`."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        kind = KINDS[code]
        written = f"`{code}`: {kind.meaning}"
        known = by_status.get(kind.status)
        by_status[kind.status] = {
            "description": f"{known['description']} {written}" if known else written,
            "content": {MEDIA_TYPE: {"schema": PROBLEM}},
        }
    return by_status
