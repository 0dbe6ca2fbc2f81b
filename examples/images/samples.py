"""Sample uploads: valid images, and one for each kind of broken upload."""

import random
import struct
import zlib
from io import BytesIO
from typing import NamedTuple
from uuid import uuid4

from PIL import Image, ImageDraw


class Sample(NamedTuple):
    """An upload and its content type."""

    name: str
    mime_type: str
    body: bytes


def samples() -> list[Sample]:
    """Return new, random images: an image uploaded before would return its existing job."""
    photo = _picture((1600, 1200), "JPEG")
    letter = f"Dear Sir or Madam, this is not a picture (our reference {uuid4()}).".encode()
    return [
        Sample("a photo", "image/jpeg", photo),
        Sample("a photo taken upright", "image/jpeg", _picture((1200, 800), "JPEG", upright=True)),
        Sample("a drawing", "image/png", _picture((640, 640), "PNG")),
        Sample("the photo again", "image/jpeg", photo),
        Sample("half a photo", "image/jpeg", photo[: len(photo) // 2]),
        Sample("a decompression bomb", "image/png", _bomb()),
        Sample("a letter", "image/png", letter),
    ]


def _picture(size: tuple[int, int], kind: str, *, upright: bool = False) -> bytes:
    picture = Image.linear_gradient("L").resize(size).convert("RGB")
    draw = ImageDraw.Draw(picture)
    for step in range(20):
        edge = 30 * step
        colour = tuple(random.randbytes(3))
        draw.ellipse((edge, edge // 2, edge + 200, edge // 2 + 200), fill=colour)
    exif = Image.Exif()
    if upright:
        exif[0x0112] = 6  # the camera was rotated by 90 degrees
    written = BytesIO()
    picture.save(written, kind, exif=exif)
    return written.getvalue()


def _bomb() -> bytes:
    """Return a PNG of a few bytes that declares 60,000 × 60,000 pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(random.randbytes(100))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
