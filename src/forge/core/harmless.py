"""The words of strangers, before they reach a terminal."""

import re


def harmless(text: str) -> str:
    """Write out what a terminal takes for commands; lines and tabs stay.

    >>> harmless("\\x1b]0;owned")
    '\\\\x1b]0;owned'
    """
    return _COMMANDS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


# To write into the clipboard, over other lines, or worse.
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
