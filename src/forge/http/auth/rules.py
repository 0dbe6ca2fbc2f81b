"""The current [auth] rules, reloaded when the settings file changes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from forge.config.server import AuthConfig, TokenConfig
from forge.config.settings import Config
from forge.http.auth.json_web_tokens import JsonWebTokens
from forge.http.auth.watched_file import FileUnreadable, WatchedFile


@dataclass(frozen=True)
class AuthRules:
    """One version of [auth], with the verifier of its JSON Web Tokens."""

    auth: AuthConfig
    web_tokens: JsonWebTokens | None

    @classmethod
    def of(cls, auth: AuthConfig, before: "AuthRules | None" = None) -> "AuthRules":
        """Return the rules of these settings, or raise a ConfigError."""
        if before is not None and _jwt_rules(auth) == _jwt_rules(before.auth):
            # Keep the verifier: other changes must not restart the grace period of its JWKS file.
            return cls(auth, before.web_tokens)
        grace = auth.reload_grace.total_seconds()
        return cls(auth, None if auth.jwt is None else JsonWebTokens(auth.jwt, grace))

    def knows(self, key: str) -> bool:
        """Whether a key is still accepted."""
        if key in self._static_keys:
            return True
        return self.web_tokens is not None and key in self.web_tokens.fingerprints()

    def keys(self) -> frozenset[str]:
        """Return all accepted keys."""
        if self.web_tokens is None:
            return self._static_keys
        try:
            return self._static_keys | self.web_tokens.fingerprints()
        except FileUnreadable:
            return self._static_keys

    def require_current(self) -> None:
        """Raise FileUnreadable if the JWKS file has been unreadable for too long."""
        if self.web_tokens is not None:
            self.web_tokens.require_current()

    @cached_property
    def _static_keys(self) -> frozenset[str]:
        return frozenset(map(key_of, self.auth.tokens))


def watch_rules(config: Config) -> Callable[[], AuthRules]:
    """Return a function that returns the current rules of the settings file."""
    rules = AuthRules.of(config.auth)
    file = config.file
    if file is None:
        return lambda: rules

    def read(path: Path) -> AuthRules:
        nonlocal rules
        auth = type(config).load(path).auth
        if auth != rules.auth:
            rules = AuthRules.of(auth, rules)
        return rules

    return WatchedFile(file, read, rules, config.auth.reload_grace.total_seconds()).value


def key_of(token: TokenConfig) -> str:
    """Return the key of a static token; it changes with the token's roles, tenant and expiry."""
    rights = f"{token.sha256} {sorted(token.roles)} {token.tenant_id} {token.expires_at}"
    return f"static:{sha256(rights.encode()).hexdigest()}"


def _jwt_rules(auth: AuthConfig) -> tuple[object, ...]:
    return (auth.jwt, auth.reload_grace)
