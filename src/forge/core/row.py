"""Rows of the database as records."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from forge.core.errors import UndecodablePayload
from forge.core.payload import decode


def values_of(record: type, row: Mapping[str, Any], json: Sequence[str]) -> dict[str, Any]:
    """Return what a row has of a record's fields, whatever else a later version may have added.

    `json` names columns of JSON, which some drivers hand out as text, some as what it means. A
    column that cannot be decoded is None, and its name is in `undecodable`, so that one row that
    was written by hand does not break the list that it is in.
    """
    known = dict(row)
    values = {field.name: known[field.name] for field in fields(record) if field.name in known}
    undecodable = []
    for name in json:
        if isinstance(values.get(name), str):
            try:
                values[name] = decode(values[name])
            except UndecodablePayload:
                values[name] = None
                undecodable.append(name)
    return values | {"undecodable": tuple(undecodable)} if undecodable else values
