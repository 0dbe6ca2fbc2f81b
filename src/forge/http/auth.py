"""Who a token speaks for: static tokens known by their hash, and JSON Web Tokens."""

import hmac
import time
from collections.abc import Callable
from hashlib import sha256

from forge.config import Config
from forge.config_server import AuthConfig
from forge.http.identity import Identity, Role
from forge.http.json_web_tokens import JsonWebTokens, NotGood
from forge.http.problem import Problem
from forge.http.reread import Reread

LONGEST_TOKEN = 16_384


class Authenticator:
    """Tells who calls; what its settings say is read again when their file changes."""

    def __init__(self, settings: Callable[[], AuthConfig]) -> None:
        self._settings = settings
        self._of: AuthConfig | None = None
        self._web_tokens: JsonWebTokens | None = None
        self._refresh()

    @classmethod
    def of(cls, config: Config) -> "Authenticator":
        """Return the authenticator of these settings, and of their file for as long as it runs."""
        file = config.file
        if file is None:
            return cls(lambda: config.auth)
        fresh = Reread(file, lambda path: type(config).load(path).auth, first=config.auth)
        return cls(fresh.value)

    def identify(self, authorization: str | None) -> Identity:
        """Return who sends this Authorization header, or raise a 401."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise refuse("there is no token; send `Authorization: Bearer <token>`")
        return self.identify_token(token.strip())

    def identify_token(self, token: str) -> Identity:
        """Return who bears this token, or raise a 401."""
        auth = self._refresh()
        if not auth.is_configured:
            raise refuse("this server knows no tokens; make one with `forge token create`")
        if len(token) > LONGEST_TOKEN:
            raise refuse("the token is too long to be one; send another")
        found = _bearer(token, auth)
        if found is None and self._web_tokens is not None and token.count(".") == 2:
            try:
                found = self._web_tokens.bearer(token)
            except NotGood as error:
                raise refuse(f"{error}; send another token") from None
        if found is None:
            raise refuse("the token is not known; make one with `forge token create`")
        return found

    def is_still_valid(self, identity: Identity) -> bool:
        """Whether who came in with a token would still be let in with it."""
        auth = self._refresh()
        if identity.expires_at is not None and identity.expires_at <= time.time():
            return False
        if identity.key is None:
            return True
        if self._web_tokens is not None and self._web_tokens.knows(identity.key):
            return True
        # The same hash with fewer rights is a withdrawal too.
        return any(
            token.sha256 == identity.key
            and frozenset(map(Role, token.roles)) == identity.roles
            and token.tenant_id == identity.tenant_id
            for token in auth.tokens
        )

    def _refresh(self) -> AuthConfig:
        auth = self._settings()
        if auth is not self._of:
            self._web_tokens = None if auth.jwt is None else JsonWebTokens(auth.jwt)
            self._of = auth
        return auth


def refuse(detail: str) -> Problem:
    """Return the answer to somebody who did not say who they are."""
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})


def _bearer(token: str, auth: AuthConfig) -> Identity | None:
    presented = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
    found = None
    for known in auth.tokens:  # all of them, so that time does not tell which one matched
        if hmac.compare_digest(presented, known.sha256):
            roles = frozenset(map(Role, known.roles))
            found = Identity(known.name, roles, known.tenant_id, key=known.sha256)
    return found
