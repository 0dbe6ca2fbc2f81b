"""The words of strangers, before they reach a terminal."""

import re


def harmless(text: str) -> str:
    """Write out what a terminal takes for commands; lines and tabs stay.

    >>> harmless("\\x1b]0;owned")
    '\\\\x1b]0;owned'
    """
    return without_bidi(_COMMANDS.sub(lambda found: f"\\x{ord(found[0]):02x}", text))


def without_bidi(text: str) -> str:
    """Write out what turns the order of the text around it, as JSON escapes it.

    >>> without_bidi("gpj." + chr(0x202E) + "exe")
    'gpj.\\\\u202eexe'
    """
    if text.isascii():
        return text
    return _BIDI.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# To write into the clipboard, over other lines, or worse.
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks, embeddings, overrides and isolates; and the separators that some terminals end a line at.
_BIDI = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
