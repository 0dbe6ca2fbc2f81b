"""Detects secrets, card numbers and documents by what they look like."""

import base64
import binascii
import re
import unicodedata
from functools import lru_cache

from forge.core.sensitive.names import hints_at_a_secret, names_a_secret

# Every match of the patterns below contains one of these, in lower case.
MARKS = (
    *("sk-", "sg.", "npm_", "ya29.", "rk_live_", "rk_test_", "whsec_", "xapp-", "gocspx-", "hf_"),
    *("pypi-", "dop_v1_", "shpat_", "hooks.slack.com", "/api/webhooks/", "accountkey"),
)
MIN_PASSWORD_CHARS = 7
LONG_SECRET_CHARS = 20


def has_hidden_shape(text: str) -> bool:
    """Whether a text contains a key of a service that the payload rules do not cover."""
    return _KEYS.search(text) is not None


def looks_secret(value: object) -> bool:
    """Whether a value under a name such as `auth` is a secret itself, not a word such as "basic".

    >>> [looks_secret(text) for text in ("hunter2", "s3cr3t!x", "oauth2", "sha-256", "basic plan")]
    [True, True, False, False, False]
    """
    if not isinstance(value, str) or len(value) < MIN_PASSWORD_CHARS or _ORDINARY.fullmatch(value):
        return False
    if not _LETTER.search(value) or _SPACE.search(value):
        return False
    if _DIGIT.search(value) or _SYMBOL.search(value):
        return True
    return len(value) >= LONG_SECRET_CHARS and value.lower() != value != value.upper()


# Anchored by the preceding character, so that each run of characters is scanned once. Keys have
# digits and capitals among the first characters; `sk-learn-compatible-estimator` has none.
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])[\w-]{20,}"  # OpenAI, Anthropic
    r"|SG\.[\w-]{16,}\.[\w-]{16,}"  # SendGrid
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|hf_[A-Za-z]{30,}"
    r"|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"  # Google
    r"|rk_(?:live|test)_\w{10,}|whsec_[\w+/]{20,}"  # Stripe
    r"|xapp-[\w-]{20,}|dop_v1_[0-9a-f]{40,}|shpat_[0-9a-fA-F]{32})"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}"
    r"|/api/webhooks/\d{10,}/[\w-]{20,}"  # Discord
    r"|(?i:AccountKey)\s*=\s*[A-Za-z0-9+/]{20,}"  # Azure
)
# Words with separators and versions, algorithms, URLs, paths, mail addresses, ids.
_ORDINARY = re.compile(
    r"(?i:[a-z]+(?:[._ -](?:[a-z]+|v?\d{1,4}))*"
    r"|(?:(?:oauth|openid|saml|sha|hmac|aes|rsa|ecdsa|ed|md|tls|hs|rs|es|ps|v|with)[._-]?(?:\d{1,5}[._-]?)*+)+"
    r"|[a-z][a-z0-9+.-]*://[^\s@]*|\.{0,2}/\S*|[^@\s]+@[^@\s]+\.[a-z]+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_LETTER = re.compile("[A-Za-z]")
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(r"[!#$%^&*+=?~|<>@]")
_SPACE = re.compile(r"\s")


# The length of the shortest secret with a known shape: 123-45-6789.
MIN_SHAPE_CHARS = 11
# Longer texts are not treated as names.
MAX_NAME_CHARS = 80


def is_plain(text: str) -> bool:
    """Whether a text cannot contain a secret; False means that it needs the full check."""
    has_signs = ":" in text or "=" in text
    if len(text) >= MIN_SHAPE_CHARS:
        if _ID_OR_TIME.fullmatch(text):
            return True
        if _has_marks(text):
            return False
    return not has_signs or not (_has_url(text) or _has_name(text))


def has_plain_shape(text: str) -> bool:
    """Whether no part of a text looks like a secret, whatever name precedes it."""
    if len(text) < MIN_SHAPE_CHARS:
        return is_plain(text)
    if _ID_OR_TIME.fullmatch(text):
        return True
    return not (_has_marks(text) or _has_url(text) or _NAMES.search(text))


def is_plain_key(key: str) -> bool:
    """Cached is_plain for keys, which repeat often."""
    return _is_plain_key(key) if len(key) <= MAX_NAME_CHARS else is_plain(key)


@lru_cache(maxsize=10_000)
def _is_plain_key(key: str) -> bool:
    return is_plain(key)


def _has_marks(text: str) -> bool:
    return bool(_NUMBER.search(text)) or any(map(text.casefold().__contains__, _MARKS))


def _has_url(text: str) -> bool:
    return "@" in text and "://" in text


def _has_name(text: str) -> bool:
    """Whether the name of a secret precedes a `:` or `=`."""
    for before in _SIGN.split(text)[:-1]:
        name = before.rstrip().rstrip("\"'\\")[-MAX_NAME_CHARS:]
        name = name[name.rfind(" ") + 1 :]
        if names_a_secret(name) or hints_at_a_secret(name):
            return True
    return False


# Every secret shape contains one of these.
_MARKS = (
    *("eyj", "-----begin", "akia", "asia", "aiza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "xox", "sk_live_", "sk_test_", "glpat-", "bearer", "basic"),
    *MARKS,
)
_SIGN = re.compile("[:=]")
# Name endings of secrets, followed by `:` or `=`.
_NAMES = re.compile(r"(?i)(?:passw(?:or)?d|passphrase|key|secret|token)[\"'\\]*\s*[:=]")
_NUMBER = re.compile(r"\d(?:-\d\d-\d|(?:\D?\d){12})")
_ID_OR_TIME = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)


# Longer texts count as letters or documents.
MAX_TEXT_CHARS = 1_000
# Longer texts of base64 characters only count as files.
MAX_BASE64_CHARS = 512
CARD_NUMBER = "a card number"
MIN_CARD_NUMBER = 10**12


def shape_of(text: str) -> str | None:
    """Return what sensitive thing a text looks like, without quoting it; None if nothing."""
    return secret_shape_of(text) or _document_shape_of(text)


def secret_shape_of(text: str) -> str | None:
    """Return what secret or card number the first 1,000 characters contain; None if nothing."""
    if len(text) < MIN_SECRET_CHARS:
        return None
    text = text[:MAX_TEXT_CHARS]
    if is_plain(text):
        return None
    for pattern, what in _SECRETS:
        if pattern.search(text):
            return what
    if (header := _HEADER.search(text)) and _is_credential(header[1].lower(), header[2]):
        return f"{header[1].lower()} credentials"
    return CARD_NUMBER if has_card_number(text) else None


def has_card_number(text: str) -> bool:
    """Whether a text contains a card number, with or without separators."""
    if not _DIGITS.search(text) or _UUID.fullmatch(text):
        return False
    plain = unicodedata.normalize("NFKC", text)
    return any(is_card(re.sub(r"\D", "", found)) for found in _RUN.findall(plain))


def is_card(digits: str) -> bool:
    """Whether a card network issues such numbers, and the check digit is valid."""
    return bool(_CARDS.fullmatch(digits)) and luhn(digits)


def luhn(digits: str) -> bool:
    """Whether the check digit is valid by the Luhn algorithm."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, doubled)) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _document_shape_of(text: str) -> str | None:
    if len(text) <= MAX_BASE64_CHARS and not _MAY_BE_DOCUMENT.search(text):
        return None
    whole, text = text, text[:MAX_TEXT_CHARS]
    for pattern, what in _DOCUMENTS:
        if pattern.search(text):
            return what
    if "\n" in text and _has_mail_headers(text):
        return "an embedded mail"
    if len(text) > MAX_BASE64_CHARS and _BASE64.fullmatch(text) and not text.isalpha():
        return "an embedded file in base64"
    if len(whole) > MAX_TEXT_CHARS:
        return f"an embedded text of more than {MAX_TEXT_CHARS:,} characters"
    return None


def _has_mail_headers(text: str) -> bool:
    """Whether a text has two kinds of mail headers: sender, recipient, subject or date."""
    found = [pattern.search(text) is not None for pattern in (_SENDER, _RECIPIENT, _TOPIC)]
    return sum(found) > 1


def _is_credential(scheme: str, value: str) -> bool:
    """Distinguish a header from prose: `Basic dXNlcjpwYXNz` from `basic plan`."""
    if scheme == "bearer":
        return len(value) >= 20 or any(sign.isdigit() for sign in value)
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


MIN_SECRET_CHARS = 6
# A digit doubled, with the digits of the result summed.
_DOUBLED = str.maketrans("0123456789", "0246813579")
_SECRETS = (
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*"), "a JSON web token"),
    (re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY"), "a private key"),
    (
        re.compile(
            r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{30,}|github_pat_\w{30,}"
            r"|xox[abprs]-[\w-]{10,}|sk_(?:live|test)_\w{10,}|AIza[\w-]{35}|glpat-[\w-]{20})"
        ),
        "an access key",
    ),
    (re.compile(r"\b\w[\w+.-]{0,20}://[^/\s:@]*:[^/\s@]+@"), "a URL with a password"),
    (
        re.compile(
            r"(?i)(?:password|passwd|passphrase|api[_-]?key|client[_-]?secret|access[_-]?token"
            r"|refresh[_-]?token|private[_-]?key)[\"'\\]*\s*[:=]\s*[\"'\\]*[^\s\"'&,;}\\]{3,}"
        ),
        "a secret with its name",
    ),
    (
        re.compile(r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}\b(?!-)"),
        "a social security number",
    ),
)
_DOCUMENTS = (
    (re.compile(r"(?i)^\s*data:[\w.+/-]*;base64,"), "an embedded file"),
    (
        re.compile(
            r"(?i)<!doctype html|<html[\s>]|<body[\s>]|^%PDF-|^\{\\rtf|^[ \t\r\n]*<\?xml"
            r"|^[ \t\r\n]*<(p|div|table|center|blockquote|span|ul|ol|h[1-6])[ \t\r\n>]"
            r"|</(p|div|table|td|tr|ul|ol|li|blockquote|span|h[1-6])>"
        ),
        "an embedded document",
    ),
    (
        re.compile(
            r"(?im)^mime-version:\s*\d|^content-transfer-encoding:"
            r"|\A[ \t\r\n]*(dear|hi|hello)[ \t][^\r\n,]{1,60},[ \t]*\r?\n"
        ),
        "an embedded mail",
    ),
    # PDF, ZIP and Office files, RTF, and the headers that mails begin with
    (
        re.compile(
            r"^(JVBERi0|UEsDB[AB]|0M8R4KGx|e1xydG|RnJvbTog|UmVjZWl2ZWQ6|TUlNRS1WZXJz"
            r"|UmV0dXJuLVBhdGg6|U3ViamVjdDog)[A-Za-z0-9+/=_\r\n-]{8,}$"
        ),
        "an embedded file in base64",
    ),
)
_SENDER = re.compile(
    r"(?im)^(from|sender|reply-to|return-path|received|delivered-to|message-id):[ \t]*[^ \t\r\n]"
)
_RECIPIENT = re.compile(r"(?im)^(to|cc|bcc):[^\r\n]*@")
_TOPIC = re.compile(r"(?im)^(subject|date):[ \t]*[^ \t\r\n]")
# Every document shape contains one of these.
_MAY_BE_DOCUMENT = re.compile(
    r"(?i)[<%{\n]|data:|-version:|-encoding:|^(JVBE|UEsD|0M8R|e1xy|RnJv|UmVj|TUlN|UmV0|U3Vi)"
)
_HEADER = re.compile(r"(?i)\b(bearer|basic)\s+([\w+/.~-]{6,})=*")
_BASE64 = re.compile(r"[\w+/=-]+(?:\r?\n[\w+/=-]+)*\s*")
_DIGITS = re.compile(r"(?:\d\D?){12}\d")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RUN = re.compile(r"(?<![0-9A-Za-z])\d(?:[ ._\u2010-\u2015\u00a0-]{0,2}\d)+(?![0-9A-Za-z])")
# Visa, Mastercard, American Express, Diners, Discover, JCB, UnionPay.
_CARDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:6011|65\d\d|64[4-9]\d)\d{12,15}"
    r"|35(?:2[89]|[3-8]\d)\d{12,15}|62\d{14,17}"
)
