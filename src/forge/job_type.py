"""A type to dispatch: its defaults, its code where this process has it, and its payload rules."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.errors import InvalidPayload
from forge.core.key import BY_INPUT, is_made_here, key_of
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.rules import (
    ENVELOPE,
    KEY,
    VERSION,
    Ruled,
    agreed_version,
    joined,
    required_faults,
    rule_faults,
    version_in,
)
from forge.core.sensitive import sensitive_faults
from forge.core.wish import Options, TypeDefaults
from forge.lookout import Lookout
from forge.registry import JobDefinition


class JobType(NamedTuple):
    """What is needed to dispatch jobs of one type."""

    defaults: TypeDefaults
    definition: JobDefinition[Any, Any] | None
    limit: int = HARD_LIMIT
    check: Callable[[Any], None] | None = None
    lookout: Lookout | None = None

    def encode(self, value: Any) -> str:
        """Check one input and write it as JSON."""
        text = self._written(value)
        if self.defaults.category is None and self.defaults.requires:
            self._refuse(required_faults(decode(text), self.defaults.requires))
        return text

    def _written(self, value: Any) -> str:
        if self.definition is not None:
            return self.definition.encode(value, limit=self.limit)
        what = f"the input of {self.defaults.name}"
        text = encode({} if value is None else value, what=what, limit=self.limit)
        if self.check is not None:
            self._check(decode(text))
        return text

    def written(self, value: Any) -> str:
        """Do the same for a type without a category, and warn of what had better not be in it."""
        text = self.encode(value)
        if self.lookout is not None:
            self.lookout.look(self.defaults, text)
        return text

    def versioned(self, text: str, options: Options) -> str:
        """Return the version of a payload without a category, by the payload or by the option."""
        return agreed_version(version_in(text), options.get("payload_version"))

    def examine(self, text: str) -> None:
        """Look at a payload without a category, whether it is its turn or not."""
        if self.lookout is not None:
            self.lookout.examine(self.defaults, text)

    def rule(self, value: Any, options: Options) -> Ruled:
        """Check one input by the rules of its category and put its envelope into it."""
        inside = _envelope_in(value)
        if isinstance(value, dict):
            # A type whose input has these fields finds them, wherever they were given.
            value = value | joined(value, options)
        kind = self.defaults
        assert kind.category is not None
        plain = decode(self.encode(value))
        if not isinstance(plain, dict):
            self._refuse(rule_faults(plain, kind.category, kind.requires))
        self._refuse(sensitive_faults(_dropped(value, plain), kind.allow_sensitive))
        payload = _versions(inside) | plain | joined(inside | plain, options)
        key = self._key(payload)
        made = MADE_OF_THE_INPUT if kind.idempotent == BY_INPUT else None
        checked = payload | {KEY: key or made}
        self._refuse(rule_faults(checked, kind.category, kind.requires, kind.allow_sensitive))
        if key is not None:
            payload[KEY] = key
        text = encode(payload, what=f"the payload of {self.defaults.name}", limit=self.limit)
        if self.lookout is not None:
            self.lookout.weigh(self.defaults, text)
        version = agreed_version(payload.get(VERSION), options.get("payload_version"))
        return Ruled(text, key, payload["tenant_id"], UUID(payload["correlation_id"]), version)

    def _check(self, plain: Any) -> None:
        assert self.check is not None
        try:
            self.check(plain)
        except InvalidPayload:
            if self.defaults.category is None or not isinstance(plain, dict):
                raise
            # The type's own input may not have the fields of the envelope, and forbid others.
            self.check({name: inner for name, inner in plain.items() if name not in ENVELOPE})

    def key(self, text: str) -> str | None:
        """Return the key that the type makes of an input; None leaves it to the database.

        It is made of what is stored: a function of the input is given what the handler will be.
        """
        if not is_made_here(self.defaults):
            return None
        plain = decode(text)
        checked = plain if self.definition is None else self.definition.decode(text)
        return key_of(self.defaults, checked, plain)

    def _key(self, payload: dict[str, Any]) -> Any:
        """Return the key of a payload; None where there is none, or the database makes it."""
        if payload.get(KEY) is not None or not is_made_here(self.defaults):
            return payload.get(KEY)
        what = f"the payload of {self.defaults.name}"
        return self.key(encode(payload, what=what, limit=self.limit))

    def _refuse(self, faults: list[Any]) -> None:
        if not faults:
            return
        told = "; ".join(f"{fault.path} {fault.message}" for fault in faults)
        category = self.defaults.category
        rules = "the rules of its type" if category is None else f"the rules of {category} jobs"
        raise InvalidPayload(
            f"the payload of {self.defaults.name} breaks {rules}: {told}",
            faults[0].path,
            faults,
        )


MADE_OF_THE_INPUT = "made of the input"


def _envelope_in(value: Any) -> dict[str, Any]:
    """Return what an input says of its envelope before a type that ignores it drops it."""
    if not isinstance(value, dict):
        return {}
    return {name: value[name] for name in (*ENVELOPE, VERSION) if value.get(name) is not None}


def _versions(inside: dict[str, Any]) -> dict[str, Any]:
    """Return the version that an input has, which the model of its type may leave out."""
    return {VERSION: inside[VERSION]} if VERSION in inside else {}


def _dropped(given: Any, kept: dict[str, Any]) -> dict[str, Any]:
    """Return what the input's model has left out: somebody meant it to be sent all the same."""
    if not isinstance(given, dict):
        return {}
    return {
        name: _plain(given[name]) for name in given if name not in kept and name not in ENVELOPE
    }


def _plain(value: Any) -> Any:
    try:
        return decode(encode(value, what="what is left out"))
    except InvalidPayload:
        return "what cannot be sent anyway"
