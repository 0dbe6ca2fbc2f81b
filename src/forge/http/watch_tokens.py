"""Watch tokens: each lets its bearer follow one job for an hour, and nothing else."""

import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from uuid import UUID

LIFETIME = 3600
# Signed along, so that no signature made for another purpose with the same secret is one of these.
PURPOSE = b"forge watch token 1"
_FORM = re.compile(r"([0-9a-f]{1,12})\.([A-Za-z0-9_-]{43})")


def make(job_id: UUID, secret: bytes, now: float) -> str:
    """Return a token that lets its bearer follow this job for an hour from now."""
    expires_at = int(now) + LIFETIME
    return f"{expires_at:x}.{_signature(job_id, expires_at, secret)}"


def check(token: str, job_id: UUID, secret: bytes, now: float) -> int | None:
    """Return when a token for this job ends, in seconds since the epoch; None if it is not good."""
    written = _FORM.fullmatch(token)
    if written is None:
        return None
    expires_at = int(written[1], 16)
    is_ours = hmac.compare_digest(written[2], _signature(job_id, expires_at, secret))
    return expires_at if is_ours and now < expires_at else None


def new_secret() -> str:
    """Return a secret for a server that was given none."""
    return secrets.token_urlsafe(32)


def _signature(job_id: UUID, expires_at: int, secret: bytes) -> str:
    signed = b"%s|%s|%d" % (PURPOSE, job_id.hex.encode(), expires_at)
    digest = hmac.digest(secret, signed, "sha256")
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
