"""Names that mark their values as secret.

A test compares these lists with docs/reference/payload-rules.md.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

# Anywhere in a name, in any spelling: dbPassword, X-Api-Key, client_secret.
SECRETS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "encryptionkey",
    "signingkey",
    "creditcard",
    "cardnumber",
    "cardnum",
    "socialsecurity",
    "bankaccount",
    "passportnumber",
    "setcookie",
)
# As a word of the name, or as its end: access_token, refreshToken, csrftoken.
SECRET_WORDS = (
    "token",
    "tokens",
    "pwd",
    "jwt",
    "bearer",
    "cookie",
    "cookies",
    "ssn",
    "cvv",
    "cvc",
    "pin",
    "otp",
    "iban",
)
# As a word of the name: redacted in output if the value looks secret too, and never rejected.
HIDDEN_WORDS = ("pass", "auth", "sig", "accountkey")
# A last word that makes it the name of a reference or a number: token_id, secret_name.
REFERENCES = (
    "id",
    "ids",
    "ref",
    "refs",
    "reference",
    "uuid",
    "name",
    "type",
    "kind",
    "version",
    "count",
    "counts",
    "limit",
    "size",
    "length",
    "usage",
    "ttl",
    "at",
    "on",
    "until",
    "expiry",
    "expires",
    "status",
    "policy",
    "hint",
    "url",
    "uri",
    "path",
)
# A first word of names for numbers and booleans: max_tokens, has_password.
FIGURES = ("max", "min", "num", "number", "total", "has", "is", "needs", "uses", "with")


# Longer names are truncated: real names are shorter, and the cache of names stays small.
MAX_NAME_CHARS = 200


def names_a_secret(name: str) -> bool:
    """Whether values under this name are secret."""
    return _meaning(name[:MAX_NAME_CHARS]).is_secret


def hints_at_a_secret(name: str) -> bool:
    """Whether a value under this name is redacted if it looks like a secret."""
    return _meaning(name[:MAX_NAME_CHARS]).is_hint


def names_a_reference(name: str) -> bool:
    """Whether a number under this name is an id, even if it looks like a card number."""
    words = words_of(name[:MAX_NAME_CHARS])
    return bool(words) and words[-1] in _REFERENCES


def names_a_figure(name: str) -> bool:
    """Whether a number under this name is a count or a limit."""
    words = words_of(name[:MAX_NAME_CHARS])
    return bool(words) and (words[0] in FIGURES or words[-1] == "tokens")


def squashed(name: str) -> str:
    """Return a name in lower case, without separators, normalized to plain characters."""
    return "".join(words_of(name[:MAX_NAME_CHARS]))


class _Meaning(NamedTuple):
    is_secret: bool
    is_hint: bool


@lru_cache(maxsize=10_000)
def _meaning(name: str) -> _Meaning:
    # Most names contain none of these words, and splitting a name is much slower.
    if name.isascii() and not _RELEVANT.search(name.translate(_SEPARATORS).lower()):
        return _ORDINARY
    words = words_of(name)
    return _Meaning(_is_secret(words), _is_hint(words))


def _is_secret(words: list[str]) -> bool:
    if not words or words[-1] in _REFERENCES:
        return False
    joined = "".join(words).replace("secretar", "")
    if _SECRETS.search(joined) or not _SECRET_WORDS.isdisjoint(words):
        return True
    return joined.endswith(("token", "tokens"))


def _is_hint(words: list[str]) -> bool:
    if not words or words[-1] in _REFERENCES:
        return False
    return not _HIDDEN_WORDS.isdisjoint(words) or "".join(words).endswith("accountkey")


def words_of(name: str) -> list[str]:
    """Split a name into lower-case words, at separators, capitals and digits."""
    if not name.isascii():
        name = _INVISIBLE.sub("", unicodedata.normalize("NFKC", name))
    return [word.lower() for word in _WORD.findall(name)]


_ORDINARY = _Meaning(is_secret=False, is_hint=False)
_REFERENCES = frozenset(REFERENCES)
_SECRET_WORDS = frozenset(SECRET_WORDS)
_HIDDEN_WORDS = frozenset(HIDDEN_WORDS)
_SECRETS = re.compile("|".join(SECRETS))
_RELEVANT = re.compile("|".join((*SECRETS, *SECRET_WORDS, *HIDDEN_WORDS)))
_SEPARATORS = {code: None for code in range(128) if not chr(code).isalnum()}
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
