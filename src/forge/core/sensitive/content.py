"""Detects content that does not belong in a job: mail bodies and documents, by name and text.

A name determines which texts under it count as content: any text under `body`, prose under
`document`, a letter under `message`. It also determines how names inside it are read: `text` inside
a `message` is the text of that message.

A test compares these lists with docs/reference/payload-rules.md.
"""

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from forge.core.sensitive.names import MAX_NAME_CHARS, REFERENCES, words_of

# As the last word, or followed by the kind of body: email_body, bodyHtml, file_content.
BODIES = ("body", "content", "contents")
KINDS = ("html", "text", "plain", "raw", "mime", "base64", "bytes", "markdown", "data")
# As the last word, for prose; followed by a kind, for any text: document, document_text.
DOCUMENTS = (
    "document",
    "documents",
    "attachment",
    "attachments",
    "letter",
    "letters",
    "transcript",
    "transcripts",
)
# As the last word, for a letter; followed by a kind, for any text: message, message_html.
MAILS = ("email", "emails", "mail", "mails", "message", "messages")
# Only followed by a kind: file_base64. Alone it is the name of a file.
FILES = ("file", "files", "doc", "docs")
# As the last word, for prose or markup: page_html.
MARKUPS = ("html", "markdown")
# Before `text` or the name of a mail, for prose: full_text, raw_email.
WHOLES = ("full", "plain", "raw", "mime", "html")
# Alone beside a `subject`, for any text: {"subject": …, "text": …}.
BESIDE_SUBJECT = ("text", "html", "plain", "markdown", "message", "raw")

MAX_REFERENCE_CHARS = 120
MAX_MESSAGE_CHARS = 500


class Level(IntEnum):
    """Which texts under a name are content."""

    NONE = 0
    LETTER = 1  # a greeting, paragraphs, more than MAX_MESSAGE_CHARS characters
    PROSE = 2  # several words or markup, except file names and similar references
    TEXT = 3  # any text except URLs, file names and similar references
    BODY = 4  # any text


class EnclosingMeaning(IntEnum):
    """What the enclosing names mean for the names inside them."""

    NOTHING = 0
    DOCUMENT = 1
    BODY = 2


class ContentPlace(NamedTuple):
    """What a name means for texts directly under it and for names inside it."""

    level: Level
    inside: EnclosingMeaning


NOWHERE: Final = ContentPlace(Level.NONE, EnclosingMeaning.NOTHING)


def place_of(name: str, inside: EnclosingMeaning, beside_subject: bool) -> ContentPlace:
    """Return what a name means at its position."""
    return _place(name[:MAX_NAME_CHARS], inside, beside_subject)


def is_content(text: str, level: Level) -> bool:
    """Whether a text under a name of this level is content, not a reference to it."""
    if level is Level.NONE:
        return False
    text = text[:1000].strip(_SPACE)
    if level is Level.BODY or not text:
        return bool(text)
    if level is Level.LETTER:
        is_long = len(text) > MAX_MESSAGE_CHARS and _SPACES.search(text)
        return bool(is_long or _GREETING.match(text) or _PARAGRAPHS.search(text))
    if level is Level.PROSE and len(text) <= MAX_REFERENCE_CHARS and not _PROSE.search(text):
        return False
    return not _REFERENCE.fullmatch(text)


@lru_cache(maxsize=10_000)
def _place(name: str, inside: EnclosingMeaning, beside_subject: bool) -> ContentPlace:
    # Most names contain none of these words, and splitting a name is much slower.
    if inside is EnclosingMeaning.NOTHING and name.isascii() and not _RELEVANT.search(name.lower()):
        return NOWHERE
    words = words_of(name)
    if words[-2:] == ["base", "64"]:
        words[-2:] = ["base64"]
    if not words or words[-1] in REFERENCES:
        return NOWHERE
    own = Level.TEXT if beside_subject and words in _BESIDE_SUBJECT else _own_level(words)
    if own is Level.BODY or inside is EnclosingMeaning.BODY:
        within = EnclosingMeaning.BODY
    else:
        within = EnclosingMeaning.DOCUMENT if own else inside
    return ContentPlace(max(own, _level_inside(words[-1], inside)), within)


def _own_level(words: list[str]) -> Level:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in BODIES or (last in _TEXT_KINDS and before in BODIES):
        return Level.BODY
    if last in _TEXT_KINDS and before in _SUBJECTS:
        return Level.TEXT
    is_whole = before in WHOLES and (last == "text" or last in MAILS)
    if is_whole or last in DOCUMENTS or last in MARKUPS or (last == "mime" and before in BODIES):
        return Level.PROSE
    return Level.LETTER if last == "text" or last in MAILS else Level.NONE


def _level_inside(last: str, inside: EnclosingMeaning) -> Level:
    if inside is EnclosingMeaning.NOTHING:
        return Level.NONE
    if last in _TEXT_KINDS:
        return Level.TEXT
    return Level.PROSE if inside is EnclosingMeaning.BODY else Level.NONE


_TEXT_KINDS = tuple(
    kind for kind in KINDS if kind != "mime"
)  # file_mime is a media type such as text/html
_SUBJECTS = (*DOCUMENTS, *MAILS, *FILES)
_BESIDE_SUBJECT = [[name] for name in BESIDE_SUBJECT]
_RELEVANT = re.compile("|".join((*BODIES, *_SUBJECTS, *MARKUPS, "text", "plain", "raw")))
_SPACE = " \t\r\n"
_SPACES = re.compile("[ \t\r\n]")
# Several words, markup, or a run of characters in a script without spaces.
_PROSE = re.compile("[ \t\r\n]|<[A-Za-z!/?]|[^\x01-\x7f]{12}")
_PARAGRAPHS = re.compile("\n[ \t\r]*\n")
_GREETING = re.compile(
    r"(?ai)(dear|hi|hello|hey|good (morning|day|afternoon|evening))[ \t][^\r\n,.!?;:]{1,40}[,!]"
    r"[ \t\r\n]"
)
# A URL, a media type, the name of a file, an address, a label with a number.
_REFERENCE = re.compile(
    r"(?ai)[a-z][a-z0-9+.-]*://[^ \t\r\n<>]+|[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[^ \t\r\n]+)?"
    r"|[^\r\n<>]+\.(pdf|docx?|xlsx?|pptx?|txt|csv|html?|md|rtf|od[tsp]|png|jpe?g|gif|tiff?|zip"
    r"|eml|msg|xml|json)|[^\r\n<>@]*<[^ \t\r\n<>@]+@[^ \t\r\n<>@]+>"
    r"|[a-z]+[ #.-]{1,3}(no\.? ?)?[0-9][a-z0-9./-]*"
)
