"""Creates and checks watch tokens: each ends with the key of the caller who requested it."""

import secrets
import time
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from forge.core.watch_token import (
    APP,
    LIFETIME,
    WatchGrant,
    make_watch_token,
    mark_of,
    read_watch_token,
)
from forge.http.auth.access import Identity
from forge.http.auth.watched_file import FileUnreadable

UNBOUND = ""


class WatchToken(NamedTuple):
    """A token and its expiry in seconds since the epoch."""

    text: str
    expires_at: int


class WatchTokens:
    """Creates and checks watch tokens, each bound to the key of the caller who requested it.

    `secret` and `keys` are read at each use: a new secret invalidates all watch tokens, and
    revoking a key invalidates those of its callers. Without `keys`, only the expiry is checked.
    Tokens that applications make with the secret itself end with the secret.
    """

    def __init__(
        self, secret: Callable[[], bytes], keys: Callable[[], frozenset[str]] | None
    ) -> None:
        self._secret = secret
        self._keys = keys or _unbound
        self._is_bound = keys is not None
        self._marks: dict[str, str] = {}
        self._marked: tuple[bytes, frozenset[str]] | None = None

    def make(self, job_id: UUID, caller: Identity) -> WatchToken:
        """Return a token for one job, valid for an hour or as long as the caller's token."""
        secret = self._secret()
        key = (caller.key or UNBOUND) if self._is_bound else UNBOUND
        mark = self._marks_now(secret).get(key) or mark_of(key, secret)
        latest = time.time() + LIFETIME
        expires_at = int(latest if caller.expires_at is None else min(latest, caller.expires_at))
        return WatchToken(
            make_watch_token(job_id, WatchGrant(expires_at, mark), secret), expires_at
        )

    def is_good(self, token: str, job_id: UUID) -> bool:
        """Whether a token is valid for this job now."""
        try:
            secret = self._secret()
            marks = self._marks_now(secret)
        except FileUnreadable:
            return False
        grant = read_watch_token(token, job_id, secret)
        return grant is not None and time.time() < grant.expires_at and grant.mark in marks.values()

    def _marks_now(self, secret: bytes) -> dict[str, str]:
        keys = self._keys()
        if self._marked != (secret, keys):
            self._marks = {key: mark_of(key, secret) for key in (*keys, APP)}
            self._marked = (secret, keys)
        return self._marks


def new_secret() -> str:
    """Return a random secret."""
    return secrets.token_urlsafe(32)


def _unbound() -> frozenset[str]:
    return frozenset({UNBOUND})
