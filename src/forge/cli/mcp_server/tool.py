"""A tool: one route of the HTTP API, described for a language model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

Schema = Mapping[str, Any]


class ApiRequest(NamedTuple):
    """A request to the HTTP API."""

    method: str
    path: str
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTool:
    """What a tool is for, what it takes, and the route that it calls."""

    name: str
    title: str
    description: str
    # Method and path, as `GET /_api/me` names the routes that a caller may call.
    route: str
    properties: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    # Sent unless the arguments say otherwise.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # Arguments that the route knows by another name.
    sent_as: Mapping[str, str] = field(default_factory=dict)
    # Whether it ends something that cannot be brought back.
    is_destructive: bool = False

    @property
    def is_read_only(self) -> bool:
        return self.route.startswith("GET ")

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    def fault_in(self, arguments: Mapping[str, Any]) -> str | None:
        """Say what is wrong with the arguments, or return None."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        found = best_match(Draft202012Validator(self.input_schema).iter_errors(dict(arguments)))
        return None if found is None else f"{found.json_path}: {found.message}"

    def request(self, arguments: Mapping[str, Any]) -> ApiRequest:
        """Return the request for arguments that have no fault."""
        method, template = self.route.split(" ")
        given = dict(self.defaults) | {
            self.sent_as.get(name, name): value for name, value in arguments.items()
        }
        in_path = [name for name in given if f"{{{name}}}" in template]
        path = template.format(**{name: quote(str(given.pop(name)), safe="") for name in in_path})
        if method == "GET":
            return ApiRequest(method, path, _query(given), None)
        return ApiRequest(method, path, {}, given)


def _query(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return query parameters; an object becomes one parameter for each of its values."""
    query: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            query |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            query[name] = value
    return query
