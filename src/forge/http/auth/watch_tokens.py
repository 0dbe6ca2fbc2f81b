"""Watch tokens: each gives access to the live updates of one job for an hour at most."""

import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from forge.http.auth.access import Identity
from forge.http.auth.watched_file import FileUnreadable

# Seconds.
LIFETIME = 3600
# Part of the signed text, so that no other signature with the same secret is a watch token.
PURPOSE = b"forge watch token 2"
CREATOR = b"forge watch token maker"
UNBOUND = ""
_FORM = re.compile(r"([0-9a-f]{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})")


class WatchToken(NamedTuple):
    """A token and its expiry in seconds since the epoch."""

    text: str
    expires_at: int


class WatchTokens:
    """Creates and checks watch tokens, each bound to the key of the caller who requested it.

    `secret` and `keys` are read at each use: a new secret invalidates all watch tokens, and
    revoking a key invalidates those of its callers. Without `keys`, only the expiry is checked.
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
        mark = self._marks_now(secret).get(key) or _mark(key, secret)
        latest = time.time() + LIFETIME
        expires_at = int(latest if caller.expires_at is None else min(latest, caller.expires_at))
        signature = _signature(job_id, expires_at, mark, secret)
        return WatchToken(f"{expires_at:x}.{mark}.{signature}", expires_at)

    def is_good(self, token: str, job_id: UUID) -> bool:
        """Whether a token is valid for this job now."""
        match = _FORM.fullmatch(token)
        if match is None:
            return False
        try:
            secret = self._secret()
            marks = self._marks_now(secret)
        except FileUnreadable:
            return False
        expires_at, mark = int(match[1], 16), match[2]
        is_ours = hmac.compare_digest(match[3], _signature(job_id, expires_at, mark, secret))
        return is_ours and time.time() < expires_at and mark in marks.values()

    def _marks_now(self, secret: bytes) -> dict[str, str]:
        keys = self._keys()
        if self._marked != (secret, keys):
            self._marks = {key: _mark(key, secret) for key in keys}
            self._marked = (secret, keys)
        return self._marks


def new_secret() -> str:
    """Return a random secret."""
    return secrets.token_urlsafe(32)


def _unbound() -> frozenset[str]:
    return frozenset({UNBOUND})


def _mark(key: str, secret: bytes) -> str:
    """Return a keyed hash of a key: browsers that hold the token must not learn the key's hash."""
    return _text(hmac.digest(secret, CREATOR + key.encode(), "sha256")[:16])


def _signature(job_id: UUID, expires_at: int, mark: str, secret: bytes) -> str:
    signed = b"%s|%s|%d|%s" % (PURPOSE, job_id.hex.encode(), expires_at, mark.encode())
    return _text(hmac.digest(secret, signed, "sha256"))


def _text(digest: bytes) -> str:
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
