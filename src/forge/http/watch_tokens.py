"""Watch tokens: each lets its bearer follow one job for an hour at most, and nothing else."""

import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from forge.http.identity import Identity
from forge.http.reread import Outdated

LIFETIME = 3600
# Signed along, so that no signature made for another purpose with the same secret is one of these.
PURPOSE = b"forge watch token 2"
MAKER = b"forge watch token maker"
UNBOUND = ""
_FORM = re.compile(r"([0-9a-f]{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})")


class WatchToken(NamedTuple):
    """A token, and when it ends in seconds since the epoch."""

    text: str
    expires_at: int


class WatchTokens:
    """Makes and checks watch tokens, each bound to the token of the caller who made it.

    `secret` and `keys` are asked at each use: a new secret ends all, and the withdrawal of a key
    ends those that its bearers made. Without `keys` only the times are bound.
    """

    def __init__(
        self, secret: Callable[[], bytes], keys: Callable[[], frozenset[str]] | None
    ) -> None:
        self._secret = secret
        self._keys = keys or _unbound
        self._is_bound = keys is not None
        self._marks: dict[str, str] = {}
        self._marked: tuple[bytes, frozenset[str]] | None = None

    def make(self, job_id: UUID, maker: Identity) -> WatchToken:
        """Return a token for one job that lasts an hour, or as long as the maker's own."""
        secret = self._secret()
        key = (maker.key or UNBOUND) if self._is_bound else UNBOUND
        mark = self._marks_now(secret).get(key) or _mark(key, secret)
        ends = time.time() + LIFETIME
        expires_at = int(ends if maker.expires_at is None else min(ends, maker.expires_at))
        signature = _signature(job_id, expires_at, mark, secret)
        return WatchToken(f"{expires_at:x}.{mark}.{signature}", expires_at)

    def is_good(self, token: str, job_id: UUID) -> bool:
        """Whether a token lets its bearer follow this job now."""
        written = _FORM.fullmatch(token)
        if written is None:
            return False
        try:
            secret = self._secret()
            marks = self._marks_now(secret)
        except Outdated:
            return False
        expires_at, mark = int(written[1], 16), written[2]
        is_ours = hmac.compare_digest(written[3], _signature(job_id, expires_at, mark, secret))
        return is_ours and time.time() < expires_at and mark in marks.values()

    def _marks_now(self, secret: bytes) -> dict[str, str]:
        keys = self._keys()
        if self._marked != (secret, keys):
            self._marks = {key: _mark(key, secret) for key in keys}
            self._marked = (secret, keys)
        return self._marks


def new_secret() -> str:
    """Return a secret for a server that was given none."""
    return secrets.token_urlsafe(32)


def _unbound() -> frozenset[str]:
    return frozenset({UNBOUND})


def _mark(key: str, secret: bytes) -> str:
    """Name a key to this server alone: a browser that holds the token must not learn the hash."""
    return _text(hmac.digest(secret, MAKER + key.encode(), "sha256")[:16])


def _signature(job_id: UUID, expires_at: int, mark: str, secret: bytes) -> str:
    signed = b"%s|%s|%d|%s" % (PURPOSE, job_id.hex.encode(), expires_at, mark.encode())
    return _text(hmac.digest(secret, signed, "sha256"))


def _text(digest: bytes) -> str:
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
