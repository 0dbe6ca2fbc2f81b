"""Who is let in at present: the settings of [auth], followed while the server runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from forge.config import Config
from forge.config_server import AuthConfig, TokenConfig
from forge.http.json_web_tokens import JsonWebTokens
from forge.http.reread import Outdated, Reread


@dataclass(frozen=True)
class Rules:
    """One state of [auth], and what reads the JSON Web Tokens that it accepts."""

    auth: AuthConfig
    web_tokens: JsonWebTokens | None

    @classmethod
    def of(cls, auth: AuthConfig, before: "Rules | None" = None) -> "Rules":
        """Return the rules of these settings, or raise a ConfigError."""
        if before is not None and _jwt_rules(auth) == _jwt_rules(before.auth):
            # The same reader: a change elsewhere must not restart the grace of its JWKS file.
            return cls(auth, before.web_tokens)
        grace = auth.reload_grace.total_seconds()
        return cls(auth, None if auth.jwt is None else JsonWebTokens(auth.jwt, grace))

    def knows(self, key: str) -> bool:
        """Whether callers who came in by this key are still let in by it."""
        if key in self._static_keys:
            return True
        return self.web_tokens is not None and key in self.web_tokens.marks()

    def keys(self) -> frozenset[str]:
        """Return the keys by which callers are let in."""
        if self.web_tokens is None:
            return self._static_keys
        try:
            return self._static_keys | self.web_tokens.marks()
        except Outdated:
            return self._static_keys

    def require_current(self) -> None:
        """Raise Outdated when the JWKS file has been unreadable for too long."""
        if self.web_tokens is not None:
            self.web_tokens.require_current()

    @cached_property
    def _static_keys(self) -> frozenset[str]:
        return frozenset(map(key_of, self.auth.tokens))


def following(config: Config) -> Callable[[], Rules]:
    """Return what gives the rules of these settings, and of their file as it changes."""
    rules = Rules.of(config.auth)
    file = config.file
    if file is None:
        return lambda: rules

    def read(path: Path) -> Rules:
        nonlocal rules
        auth = type(config).load(path).auth
        if auth != rules.auth:
            rules = Rules.of(auth, rules)
        return rules

    return Reread(file, read, rules, config.auth.reload_grace.total_seconds()).value


def key_of(token: TokenConfig) -> str:
    """Return what names a static token and its rights: with other rights it is another key."""
    rights = f"{token.sha256} {sorted(token.roles)} {token.tenant_id} {token.expires_at}"
    return f"static:{sha256(rights.encode()).hexdigest()}"


def _jwt_rules(auth: AuthConfig) -> tuple[object, ...]:
    return (auth.jwt, auth.reload_grace)
