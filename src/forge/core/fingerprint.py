"""Fingerprints: failures of one cause share theirs, whatever line or message they have."""

import hashlib


def fingerprint(
    job_type: str, category: str | None, error_class: str | None, exception: str, place: str
) -> str:
    """Name a cause by its type and category, its class, its exception and its place in the code.

    The category of a type may change: lists by category find letters by their fingerprints.

    >>> fingerprint("mail", None, None, "ValueError", "shop.mail:send")
    'cb7cfd8948a9cafc'
    """
    cause = "\0".join((job_type, category or "", error_class or "", exception, place))
    return hashlib.sha256(cause.encode("utf-8", "replace")).hexdigest()[:16]
