"""JSON merge patches (RFC 7396)."""

from typing import Any


def merge_patch(value: Any, patch: Any) -> Any:
    """Return a JSON value with a merge patch applied; neither is changed.

    >>> merge_patch({"format": "csv", "to": {"mail": "a@b", "copy": 1}},
    ...             {"format": "pdf", "to": {"copy": None}})
    {'format': 'pdf', 'to': {'mail': 'a@b'}}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), part)
    return merged
