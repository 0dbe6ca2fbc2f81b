"""Reads database rows into records."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from forge.core.errors import UndecodablePayload
from forge.core.payload import decode


def values_of(record: type, row: Mapping[str, Any], json: Sequence[str]) -> dict[str, Any]:
    """Return the values of a record's fields; columns that a later version added are ignored.

    `json` names the JSON columns, which some drivers return as text and others decode. A column
    that cannot be decoded is None and named in `undecodable`, so that one row written by hand does
    not break a whole list.
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
