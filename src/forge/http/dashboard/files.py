"""The built files of the dashboard, in memory."""

import gzip
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from mimetypes import types_map
from pathlib import Path
from typing import NamedTuple

BUILT = Path(__file__).parent / "built"
# An empty value in `dashboard/index.html`, which the server fills in.
META = '<meta name="forge-{}" content="{}" />'


class BuiltFile(NamedTuple):
    """A file as browsers receive it."""

    body: bytes
    # None if compression would not make it smaller.
    compressed: bytes | None
    media_type: str
    etag: str

    @classmethod
    def of(cls, body: bytes, suffix: str) -> "BuiltFile":
        compressed = gzip.compress(body, 9, mtime=0)
        media_type = "text/javascript" if suffix == ".js" else types_map[suffix]
        charset = "; charset=utf-8" if media_type.startswith("text/") else ""
        return cls(
            body,
            compressed if len(compressed) < len(body) else None,
            media_type + charset,
            f'"{sha256(body).hexdigest()[:32]}"',
        )


@cache
def assets() -> Mapping[str, BuiltFile]:
    """Return the files whose names contain the hash of their content."""
    folder = BUILT / "assets"
    return {path.name: BuiltFile.of(path.read_bytes(), path.suffix) for path in folder.iterdir()}


@cache
def page(label: str | None, trace_url: str | None) -> BuiltFile:
    """Return the page, with the settings of this environment."""
    text = (BUILT / "index.html").read_text("utf-8")
    for name, value in (("label", label), ("trace-url", trace_url)):
        if value is not None:
            text = text.replace(META.format(name, ""), META.format(name, escape(value)))
    return BuiltFile.of(text.encode(), ".html")
