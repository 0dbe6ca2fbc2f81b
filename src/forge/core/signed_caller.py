"""The caller that a database session acts for, as the setting forge.tenant_id holds it."""

import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

# How long a signed caller is accepted, in seconds. Sessions that last longer sign again after half
# of it, so that the clocks of the application and the database may differ by the other half.
LIFETIME = 600
RENEW_AFTER = LIFETIME / 2

_PURPOSE = b"forge.tenant_id 1"
_BLOCK = 64
_UNSIGNED = "0" * 64
_NEVER = 999_999_999_999


class Pads(NamedTuple):
    """A key as the two hashes of HMAC take it, which is how the database keeps it."""

    inner: bytes
    outer: bytes


def derive_key(secret: str) -> bytes:
    """Return the key that signs callers; from it nothing can be learnt about the secret."""
    return hmac.digest(secret.encode(), _PURPOSE, sha256)


def pads(key: bytes) -> Pads:
    """Return a key padded for the inner and for the outer hash."""
    padded = key.ljust(_BLOCK, b"\0")
    return Pads(bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded))


def sign(caller: Mapping[str, Any], key: bytes | None, now: float) -> str:
    """Return the value of forge.tenant_id for a caller; without a key it is not signed."""
    expiry = _NEVER if key is None else int(now) + LIFETIME
    # ASCII, so that the encoding of a borrowed connection does not matter.
    body = f"{expiry}.{json.dumps(caller, separators=(',', ':'))}"
    return f"{_UNSIGNED if key is None else hmac.digest(key, body.encode(), sha256).hex()}.{body}"
