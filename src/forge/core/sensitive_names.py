"""Names that say that what lies under them is secret.

The lists are the documented ones: docs/reference/payload-rules.md is compared with them.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

# Anywhere in a name, however it is spelled: dbPassword, X-Api-Key, client_secret.
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
# As a word of the name: hidden when shown if the value looks secret too, and never refused.
HIDDEN_WORDS = ("pass", "auth", "sig", "accountkey")
# A last word that makes the name one of a reference or of a figure: token_id, secret_name.
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
# A first word after which a number or a yes or no follows: max_tokens, has_password.
FIGURES = ("max", "min", "num", "number", "total", "has", "is", "needs", "uses", "with")


# Longer names are cut: nothing real is longer, and what is remembered of names stays small.
LONGEST = 200


def names_a_secret(name: str) -> bool:
    """Whether a secret is to be expected under this name."""
    return _meaning(name[:LONGEST]).is_secret


def hints_at_a_secret(name: str) -> bool:
    """Whether a value under this name is hidden when it looks like a secret."""
    return _meaning(name[:LONGEST]).is_hint


def names_a_reference(name: str) -> bool:
    """Whether a number under this name is an id, not what it may look like."""
    words = words_of(name[:LONGEST])
    return bool(words) and words[-1] in _REFERENCES


def names_a_figure(name: str) -> bool:
    """Whether a number under this name counts or limits something."""
    words = words_of(name[:LONGEST])
    return bool(words) and (words[0] in FIGURES or words[-1] == "tokens")


def squashed(name: str) -> str:
    """Return a name without case, accents of width and signs between its words."""
    return "".join(words_of(name[:LONGEST]))


class _Meaning(NamedTuple):
    is_secret: bool
    is_hint: bool


@lru_cache(maxsize=10_000)
def _meaning(name: str) -> _Meaning:
    # Most names hold none of these words in any spelling, and splitting them costs far more.
    if name.isascii() and not _TELLING.search(name.translate(_SIGNS).lower()):
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
    """Split a name where its words begin: at signs, at humps, at digits."""
    if not name.isascii():
        name = _INVISIBLE.sub("", unicodedata.normalize("NFKC", name))
    return [word.lower() for word in _WORD.findall(name)]


_ORDINARY = _Meaning(is_secret=False, is_hint=False)
_REFERENCES = frozenset(REFERENCES)
_SECRET_WORDS = frozenset(SECRET_WORDS)
_HIDDEN_WORDS = frozenset(HIDDEN_WORDS)
_SECRETS = re.compile("|".join(SECRETS))
_TELLING = re.compile("|".join((*SECRETS, *SECRET_WORDS, *HIDDEN_WORDS)))
_SIGNS = {code: None for code in range(128) if not chr(code).isalnum()}
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
