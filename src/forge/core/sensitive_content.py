"""Content that does not belong in a job: mail bodies and documents, by their names and texts.

A name says how much a text under it takes to be content: anything under `body`, prose under
`document`, a letter under `message`. A name also says what is expected inside it: `text` within a
`message` is the text of that message.

The lists are the documented ones: docs/reference/payload-rules.md is compared with them.
"""

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from forge.core.sensitive_names import LONGEST, REFERENCES, words_of

# As the last word, or followed by what kind of body it is: email_body, bodyHtml, file_content.
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
# Followed by a kind only: file_base64. By itself it is the name of one.
FILES = ("file", "files", "doc", "docs")
# As the last word, for prose or markup: page_html.
MARKUPS = ("html", "markdown")
# Before `text` or the name of a mail, for prose: full_text, raw_email.
WHOLES = ("full", "plain", "raw", "mime", "html")
# Alone beside a `subject`, for any text: {"subject": …, "text": …}.
BESIDE_SUBJECT = ("text", "html", "plain", "markdown", "message", "raw")

LONGEST_REFERENCE = 120
LONGEST_MESSAGE = 500


class Level(IntEnum):
    """What makes a text under a name content."""

    NONE = 0
    LETTER = 1  # a greeting, paragraphs, more than LONGEST_MESSAGE characters
    PROSE = 2  # several words or markup, unless they are the name of a file and the like
    TEXT = 3  # any text but a URL, the name of a file and the like
    BODY = 4  # any text


class Inside(IntEnum):
    """What the names above say of the names within."""

    NOTHING = 0
    DOCUMENT = 1
    BODY = 2


class Place(NamedTuple):
    """What a name means for the texts directly under it, and for the names inside it."""

    level: Level
    inside: Inside


NOWHERE: Final = Place(Level.NONE, Inside.NOTHING)


def place_of(name: str, inside: Inside, beside_subject: bool) -> Place:
    """Say what a name means where it stands."""
    return _place(name[:LONGEST], inside, beside_subject)


def is_content(text: str, level: Level) -> bool:
    """Whether a text under a name of this level is content, not a reference to it."""
    if level is Level.NONE:
        return False
    text = text[:1000].strip(_SPACE)
    if level is Level.BODY or not text:
        return bool(text)
    if level is Level.LETTER:
        is_long = len(text) > LONGEST_MESSAGE and _SPACES.search(text)
        return bool(is_long or _GREETING.match(text) or _PARAGRAPHS.search(text))
    if level is Level.PROSE and len(text) <= LONGEST_REFERENCE and not _PROSE.search(text):
        return False
    return not _REFERENCE.fullmatch(text)


@lru_cache(maxsize=10_000)
def _place(name: str, inside: Inside, beside_subject: bool) -> Place:
    # Most names hold none of these words in any spelling, and splitting them costs far more.
    if inside is Inside.NOTHING and name.isascii() and not _TELLING.search(name.lower()):
        return NOWHERE
    words = words_of(name)
    if words[-2:] == ["base", "64"]:
        words[-2:] = ["base64"]
    if not words or words[-1] in REFERENCES:
        return NOWHERE
    own = Level.TEXT if beside_subject and words in _BESIDE_SUBJECT else _own_level(words)
    if own is Level.BODY or inside is Inside.BODY:
        within = Inside.BODY
    else:
        within = Inside.DOCUMENT if own else inside
    return Place(max(own, _level_inside(words[-1], inside)), within)


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


def _level_inside(last: str, inside: Inside) -> Level:
    if inside is Inside.NOTHING:
        return Level.NONE
    if last in _TEXT_KINDS:
        return Level.TEXT
    return Level.PROSE if inside is Inside.BODY else Level.NONE


_TEXT_KINDS = tuple(kind for kind in KINDS if kind != "mime")  # file_mime is text/html and the like
_SUBJECTS = (*DOCUMENTS, *MAILS, *FILES)
_BESIDE_SUBJECT = [[name] for name in BESIDE_SUBJECT]
_TELLING = re.compile("|".join((*BODIES, *_SUBJECTS, *MARKUPS, "text", "plain", "raw")))
_SPACE = " \t\r\n"
_SPACES = re.compile("[ \t\r\n]")
# Several words, markup, or a run of a script that has no spaces.
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
