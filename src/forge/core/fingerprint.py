"""Fingerprints: failures of one cause share theirs, whatever line or message they have."""

import hashlib


def fingerprint(job_type: str, error_class: str | None, exception: str, place: str) -> str:
    """Name a cause by its type, its class, its exception and its place in the code.

    >>> fingerprint("mail", None, "ValueError", "shop.mail:send")
    '3e927799999c8285'
    """
    cause = "\0".join((job_type, error_class or "", exception, place))
    return hashlib.sha256(cause.encode("utf-8", "replace")).hexdigest()[:16]
