"""Who a token speaks for: static tokens known by their hash, and JSON Web Tokens."""

import hmac
import time
from collections.abc import Callable
from hashlib import sha256

from forge.config import Config
from forge.config_server import AuthConfig
from forge.http.identity import Identity, Role
from forge.http.json_web_tokens import NotGood
from forge.http.problem import Problem
from forge.http.refusals import as_problem
from forge.http.reread import Outdated
from forge.http.rules import Rules, following, key_of

LONGEST_TOKEN = 16_384


class Authenticator:
    """Identifies callers by the rules in force, which may change while it is used."""

    def __init__(self, rules: Callable[[], Rules]) -> None:
        self._rules = rules

    @classmethod
    def of(cls, config: Config) -> "Authenticator":
        """Return the authenticator of these settings, which follows their file."""
        return cls(following(config))

    def identify(self, authorization: str | None) -> Identity:
        """Return who sends this Authorization header, or raise a 401."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise refuse("there is no token; send `Authorization: Bearer <token>`")
        return self.identify_token(token.strip())

    def identify_token(self, token: str) -> Identity:
        """Return who bears this token, or raise a 401; a 503 while the rules cannot be read."""
        try:
            return _identify(token, self._rules())
        except Outdated as error:
            raise as_problem(error) from None

    def is_still_valid(self, identity: Identity) -> bool:
        """Whether the token that a caller came in with would still be accepted."""
        if identity.expires_at is not None and identity.expires_at <= time.time():
            return False
        try:
            return identity.key is None or self._rules().knows(identity.key)
        except Outdated:
            return False

    def keys(self) -> frozenset[str]:
        """Return the keys by which callers are let in at present."""
        return self._rules().keys()


def refuse(detail: str) -> Problem:
    """Return the answer to a caller without a valid token."""
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})


def _identify(token: str, rules: Rules) -> Identity:
    if not rules.auth.is_configured:
        raise refuse("this server knows no tokens; make one with `forge token create`")
    if len(token) > LONGEST_TOKEN:
        raise refuse("the token is too long to be one; send another")
    found = _bearer(token, rules.auth)
    if found is None and rules.web_tokens is not None and token.count(".") == 2:
        try:
            found = rules.web_tokens.bearer(token)
        except NotGood as error:
            raise refuse(f"{error}; send another token") from None
    if found is None:
        raise refuse("the token is not known; make one with `forge token create`")
    if found.expires_at is not None and found.expires_at <= time.time():
        raise refuse("the token has expired; make another with `forge token create`")
    return found


def _bearer(token: str, auth: AuthConfig) -> Identity | None:
    presented = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
    found = None
    for known in auth.tokens:  # all of them, so that time does not tell which one matched
        if hmac.compare_digest(presented, known.sha256):
            ends = None if known.expires_at is None else known.expires_at.timestamp()
            roles = frozenset(map(Role, known.roles))
            found = Identity(known.name, roles, known.tenant_id, ends, key=key_of(known))
    return found
