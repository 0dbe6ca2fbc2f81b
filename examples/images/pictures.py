"""Pictures: from bytes that somebody sent to thumbnails, or to a reason why there are none."""

from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

SIZES = {"small": 128, "large": 512}
# A small file may claim to be a wall of pixels: decoding it would take all memory there is.
MOST_PIXELS = 40_000_000
FORMATS = ("JPEG", "PNG", "WEBP", "GIF")


class Unusable(Exception):
    """What was sent makes no thumbnail, now or later; `kind` is the label of the metric."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Thumbnail(NamedTuple):
    """A picture in one of the sizes, as WebP."""

    name: str
    width: int
    height: int
    body: bytes


def thumbnails(body: bytes) -> list[Thumbnail]:
    """Make a thumbnail of each size."""
    picture = _decoded(body)
    return [_shrunk(picture, name, edge) for name, edge in SIZES.items()]


def _decoded(body: bytes) -> Image.Image:
    try:
        picture = Image.open(BytesIO(body), formats=FORMATS)
    except UnidentifiedImageError:
        known = ", ".join(FORMATS)
        raise Unusable("not_an_image", f"this is no picture; send one of {known}") from None
    except Image.DecompressionBombError:
        raise _too_large("a decompression bomb") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise Unusable("broken", f"the picture cannot be read ({error}); send it again") from None
    width, height = picture.size
    if width * height > MOST_PIXELS:
        raise _too_large(f"it is {width} × {height} pixels")
    try:
        picture.load()
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise Unusable("truncated", f"the picture ends early ({error}); send it again") from None
    return ImageOps.exif_transpose(picture)


def _too_large(why: str) -> Unusable:
    return Unusable("too_large", f"the picture is too large ({why}); send a smaller one")


def _shrunk(picture: Image.Image, name: str, edge: int) -> Thumbnail:
    small = picture.convert("RGBA" if "A" in picture.getbands() else "RGB")
    small.thumbnail((edge, edge))
    written = BytesIO()
    small.save(written, "WEBP", quality=80)
    return Thumbnail(name, *small.size, written.getvalue())
