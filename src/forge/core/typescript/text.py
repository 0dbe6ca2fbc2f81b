"""Names, literals and comments as TypeScript text, safe for any input."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from forge.core.terminal_safe import without_bidi

INDENT = "  "


def pascal_case(name: str) -> str:
    """Join the words of a name, each with a capital letter; the result may start with a digit.

    >>> pascal_case("billing.export-users"), pascal_case("HTTP_fetch"), pascal_case("größe")
    ('BillingExportUsers', 'HTTPFetch', 'Größe')
    """
    composed = unicodedata.normalize("NFC", name)
    words = "".join(c if _continues_word(c) else " " for c in composed).split()
    return "".join(word[0].upper() + word[1:] for word in words)


def type_name(words: str) -> str:
    """Return a name in Pascal case as an identifier.

    >>> type_name("ExportUsersInput"), type_name("3dRenderInput")
    ('ExportUsersInput', '_3dRenderInput')
    """
    return words if words[:1].isidentifier() else f"_{words}"


def property_name(name: str) -> str:
    """Return the name of a property, in quotes where it is no identifier.

    >>> property_name("rows"), property_name("first-name"), property_name("class")
    ('rows', '"first-name"', 'class')
    """
    return name if _PLAIN_PROPERTY.fullmatch(name) else string_literal(name)


def string_literal(value: str) -> str:
    """Return a string literal; control characters, bidi marks and surrogates are escaped."""
    return _escaped(json.dumps(value, ensure_ascii=False))


def json_literal_type(value: Any) -> str:
    """Return the type that has this JSON value alone."""
    match value:
        case str():
            return string_literal(value)
        case list():
            return f"[{', '.join(map(json_literal_type, value))}]"
        case dict():
            return object_type(
                f"{property_name(name)}: {json_literal_type(inner)}"
                for name, inner in value.items()
            )
    # JSON has no NaN and no Infinity; TypeScript has no type for them.
    return "number" if value != value or abs(value or 0) == float("inf") else json.dumps(value)


def object_type(members: Iterable[str]) -> str:
    """Return an object type on one line."""
    written = "; ".join(members)
    return f"{{ {written} }}" if written else "{ [key: string]: never }"


def doc_comment(lines: Sequence[str], indent: str = "") -> str:
    """Return a doc comment with its newline; nothing where there is nothing to say."""
    safe = [_in_comment(line) for line in lines]
    if not any(safe):
        return ""
    if len(safe) == 1:
        return f"{indent}/** {safe[0]} */\n"
    body = "\n".join(f"{indent} * {line}".rstrip() for line in safe)
    return f"{indent}/**\n{body}\n{indent} */\n"


def doc_lines(text: str | None, tags: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines of a description, followed by its tags: `@default "csv"`."""
    lines = (text or "").strip().splitlines()
    return lines + [f"@{name} {value}".rstrip() for name, value in (tags or {}).items()]


def _continues_word(character: str) -> bool:
    """Whether a character may be part of an identifier; an underscore separates words."""
    return character != "_" and f"a{character}".isidentifier()


def _in_comment(line: str) -> str:
    return _escaped(line.rstrip()).replace("*/", "*\\/")


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", without_bidi(text))


_PLAIN_PROPERTY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
# Control characters, and surrogates without a partner, which no encoding can write.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
