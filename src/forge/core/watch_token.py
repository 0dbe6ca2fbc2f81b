"""The format of watch tokens: each gives access to the live updates of one job for an hour."""

import hmac
import re
from base64 import urlsafe_b64encode
from typing import NamedTuple
from uuid import UUID

# Seconds.
LIFETIME = 3600
# The maker of tokens that an application makes in its own process.
APP = "app"
# Part of the signed text, so that no other signature with the same secret is a watch token.
PURPOSE = b"forge watch token 2"
MAKER = b"forge watch token maker"
_FORM = re.compile(r"([0-9a-f]{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})")


class WatchGrant(NamedTuple):
    """What a genuine token says: when it expires, in seconds since the epoch, and its maker."""

    expires_at: int
    mark: str


def make_watch_token(job_id: UUID, grant: WatchGrant, secret: bytes) -> str:
    """Return a token for one job."""
    return f"{grant.expires_at:x}.{grant.mark}.{_signature(job_id, grant, secret)}"


def read_watch_token(token: str, job_id: UUID, secret: bytes) -> WatchGrant | None:
    """Return what a token says, or None if this secret did not sign it for this job."""
    match = _FORM.fullmatch(token)
    if match is None:
        return None
    grant = WatchGrant(int(match[1], 16), match[2])
    return grant if hmac.compare_digest(match[3], _signature(job_id, grant, secret)) else None


def mark_of(maker: str, secret: bytes) -> str:
    """Return a keyed hash of a maker: browsers that hold the token must not learn its key."""
    return _text(hmac.digest(secret, MAKER + maker.encode(), "sha256")[:16])


def _signature(job_id: UUID, grant: WatchGrant, secret: bytes) -> str:
    signed = b"%s|%s|%d|%s" % (PURPOSE, job_id.hex.encode(), grant.expires_at, grant.mark.encode())
    return _text(hmac.digest(secret, signed, "sha256"))


def _text(digest: bytes) -> str:
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
