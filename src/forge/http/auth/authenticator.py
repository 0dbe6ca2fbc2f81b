"""Authenticates callers: static tokens by their hash, and JSON Web Tokens."""

import hmac
import time
from collections.abc import Callable
from hashlib import sha256

from starlette.requests import HTTPConnection

from forge.config.server import AuthConfig
from forge.config.settings import Config
from forge.http.auth.access import Identity, Role
from forge.http.auth.json_web_tokens import InvalidToken
from forge.http.auth.rules import AuthRules, key_of, watch_rules
from forge.http.auth.watched_file import FileUnreadable
from forge.http.problems.error_handlers import as_problem
from forge.http.problems.problem import Problem

MAX_TOKEN_LENGTH = 16_384


class Authenticator:
    """Identifies callers by the current rules, which are reloaded when the settings change."""

    def __init__(self, rules: Callable[[], AuthRules]) -> None:
        self._rules = rules

    @classmethod
    def of(cls, config: Config) -> "Authenticator":
        """Return an authenticator for these settings that reloads their file."""
        return cls(watch_rules(config))

    async def identify_request(self, connection: HTTPConnection) -> Identity:
        """Return the sender of a request or of a socket, or raise a 401.

        A subclass may look up the session of a host application here.
        """
        return self.identify(connection.headers.get("authorization"))

    def identify(self, authorization: str | None) -> Identity:
        """Return the sender of an Authorization header, or raise a 401."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthenticated("no token; send `Authorization: Bearer <token>`")
        return self.identify_token(token.strip())

    def identify_token(self, token: str) -> Identity:
        """Return the holder of a token, or raise a 401; a 503 if the rules are unreadable."""
        try:
            return _identify(token, self._rules())
        except FileUnreadable as error:
            raise as_problem(error) from None

    def is_still_valid(self, identity: Identity) -> bool:
        """Whether the caller's token would still be accepted."""
        if identity.expires_at is not None and identity.expires_at <= time.time():
            return False
        try:
            return identity.key is None or self._rules().knows(identity.key)
        except FileUnreadable:
            return False

    def keys(self) -> frozenset[str]:
        """Return the keys that are accepted at present."""
        return self._rules().keys()


def unauthenticated(detail: str) -> Problem:
    """Return a 401."""
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})


def _identify(token: str, rules: AuthRules) -> Identity:
    if not rules.auth.is_configured:
        raise unauthenticated("no tokens are configured; create one with `forge token create`")
    if len(token) > MAX_TOKEN_LENGTH:
        raise unauthenticated(
            f"the token is longer than {MAX_TOKEN_LENGTH} characters; send another one"
        )
    found = _static_identity(token, rules.auth)
    if found is None and rules.web_tokens is not None and token.count(".") == 2:
        try:
            found = rules.web_tokens.identify(token)
        except InvalidToken as error:
            raise unauthenticated(f"{error}; send another token") from None
    if found is None:
        raise unauthenticated("unknown token; create one with `forge token create`")
    if found.expires_at is not None and found.expires_at <= time.time():
        raise unauthenticated("the token has expired; create another one with `forge token create`")
    return found


def _static_identity(token: str, auth: AuthConfig) -> Identity | None:
    presented = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
    found = None
    for known in auth.tokens:  # all of them: the time must not reveal which one matched
        if hmac.compare_digest(presented, known.sha256):
            expires_at = None if known.expires_at is None else known.expires_at.timestamp()
            roles = frozenset(map(Role, known.roles))
            found = Identity(known.name, roles, known.tenant_id, expires_at, key=key_of(known))
    return found
