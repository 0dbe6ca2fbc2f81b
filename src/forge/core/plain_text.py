"""Telling quickly that a text holds no secret: most do not, and a closer look costs far more."""

import re
from functools import lru_cache

from forge.core.hidden_shapes import MARKS
from forge.core.sensitive_names import hints_at_a_secret, names_a_secret

# The shortest secret that is known by its shape, 123-45-6789, has so many characters.
SHORTEST_SHAPE = 11
# A name that is longer is not taken for one.
LONGEST_NAME = 80


def is_plain(text: str) -> bool:
    """Whether nothing in a text can be secret; False only means that it must be looked at."""
    has_signs = ":" in text or "=" in text
    if len(text) >= SHORTEST_SHAPE:
        if _ID_OR_TIME.fullmatch(text):
            return True
        if _has_marks(text):
            return False
    return not has_signs or not (_has_url(text) or _has_name(text))


def has_plain_shape(text: str) -> bool:
    """Whether nothing in a text looks like a secret, whatever name stands before it."""
    if len(text) < SHORTEST_SHAPE:
        return is_plain(text)
    if _ID_OR_TIME.fullmatch(text):
        return True
    return not (_has_marks(text) or _has_url(text) or _NAMES.search(text))


def is_plain_key(key: str) -> bool:
    """The same of a key, of which there are few, again and again."""
    return _is_plain_key(key) if len(key) <= LONGEST_NAME else is_plain(key)


@lru_cache(maxsize=10_000)
def _is_plain_key(key: str) -> bool:
    return is_plain(key)


def _has_marks(text: str) -> bool:
    return bool(_NUMBER.search(text)) or any(map(text.casefold().__contains__, _MARKS))


def _has_url(text: str) -> bool:
    return "@" in text and "://" in text


def _has_name(text: str) -> bool:
    """Whether the name of a secret stands before one of the signs that a value may follow."""
    for before in _SIGN.split(text)[:-1]:
        name = before.rstrip().rstrip("\"'\\")[-LONGEST_NAME:]
        name = name[name.rfind(" ") + 1 :]
        if names_a_secret(name) or hints_at_a_secret(name):
            return True
    return False


# What each shape cannot do without.
_MARKS = (
    *("eyj", "-----begin", "akia", "asia", "aiza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "xox", "sk_live_", "sk_test_", "glpat-", "bearer", "basic"),
    *MARKS,
)
_SIGN = re.compile("[:=]")
# What the names in the shape of a secret with its name end with, before a sign.
_NAMES = re.compile(r"(?i)(?:passw(?:or)?d|passphrase|key|secret|token)[\"'\\]*\s*[:=]")
_NUMBER = re.compile(r"\d(?:-\d\d-\d|(?:\D?\d){12})")
_ID_OR_TIME = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)
