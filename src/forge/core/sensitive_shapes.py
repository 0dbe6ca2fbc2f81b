"""Values that give themselves away: what a secret, a card or a document looks like."""

import base64
import binascii
import re
import unicodedata

from forge.core.plain_text import is_plain

# A text longer than this is somebody's letter or document.
LONGEST_TEXT = 1_000
# And a shorter one, of nothing but the signs that base64 uses, is a file.
LONGEST_BASE64 = 512
CARD_NUMBER = "a card number"
SMALLEST_CARD = 10**12


def shape_of(text: str) -> str | None:
    """Say what a text looks like if that does not belong in a job; never quote it."""
    return secret_shape_of(text) or _document_shape_of(text)


def secret_shape_of(text: str) -> str | None:
    """Say what secret, card or number of a person a text holds, by its first 1,000 characters."""
    if len(text) < SHORTEST:
        return None
    text = text[:LONGEST_TEXT]
    if is_plain(text):
        return None
    for pattern, what in _SECRETS:
        if pattern.search(text):
            return what
    if (header := _HEADER.search(text)) and _is_credential(header[1].lower(), header[2]):
        return f"{header[1].lower()} credentials"
    return CARD_NUMBER if has_card_number(text) else None


def has_card_number(text: str) -> bool:
    """Whether there is a card number in it, with or without separators."""
    if not _DIGITS.search(text) or _UUID.fullmatch(text):
        return False
    plain = unicodedata.normalize("NFKC", text)
    return any(is_card(re.sub(r"\D", "", found)) for found in _RUN.findall(plain))


def is_card(digits: str) -> bool:
    """Whether a network gives out cards with such numbers, and the check digit is right."""
    return bool(_CARDS.fullmatch(digits)) and luhn(digits)


def luhn(digits: str) -> bool:
    """Whether the last digit is the one that the others ask for."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, doubled)) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _document_shape_of(text: str) -> str | None:
    if len(text) <= LONGEST_BASE64 and not _MAY_BE_DOCUMENT.search(text):
        return None
    whole, text = text, text[:LONGEST_TEXT]
    for pattern, what in _DOCUMENTS:
        if pattern.search(text):
            return what
    if "\n" in text and _has_mail_headers(text):
        return "an embedded mail"
    if len(text) > LONGEST_BASE64 and _BASE64.fullmatch(text) and not text.isalpha():
        return "an embedded file in base64"
    if len(whole) > LONGEST_TEXT:
        return f"an embedded text of more than {LONGEST_TEXT:,} characters"
    return None


def _has_mail_headers(text: str) -> bool:
    """Whether there are two kinds of headers in it: who sent it, to whom, about what and when."""
    found = [pattern.search(text) is not None for pattern in (_SENDER, _RECIPIENT, _TOPIC)]
    return sum(found) > 1


def _is_credential(scheme: str, value: str) -> bool:
    """Tell a header from prose: `Basic dXNlcjpwYXNz` from `basic plan`."""
    if scheme == "bearer":
        return len(value) >= 20 or any(sign.isdigit() for sign in value)
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


SHORTEST = 6
# A digit doubled, and the digits of that added up.
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
# What each of them cannot do without.
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
