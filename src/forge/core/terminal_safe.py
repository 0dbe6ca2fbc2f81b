"""Escapes untrusted text for terminals."""

import re


def terminal_safe(text: str) -> str:
    """Escape control characters and bidirectional marks; newlines and tabs stay.

    >>> terminal_safe("\\x1b]0;owned")
    '\\\\x1b]0;owned'
    """
    return without_bidi(_COMMANDS.sub(lambda found: f"\\x{ord(found[0]):02x}", text))


def without_bidi(text: str) -> str:
    """Escape characters that reorder the text around them, as in JSON.

    >>> without_bidi("gpj." + chr(0x202E) + "exe")
    'gpj.\\\\u202eexe'
    """
    if text.isascii():
        return text
    return _BIDI.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# Terminals interpret these: escape sequences can write to the clipboard or over other lines.
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks, embeddings, overrides and isolates, and separators that some terminals treat as newlines.
_BIDI = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
