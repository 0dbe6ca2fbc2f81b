"""Create thumbnails from uploaded bytes, or raise the reason why that is impossible."""

from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

SIZES = {"small": 128, "large": 512}
# Decompression bombs: a small file can declare huge dimensions and exhaust memory.
MAX_PIXELS = 40_000_000
FORMATS = ("JPEG", "PNG", "WEBP", "GIF")


class Unusable(Exception):
    """The upload can never become a thumbnail; `kind` is the label of the metric."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Thumbnail(NamedTuple):
    """A resized image, as WebP."""

    name: str
    width: int
    height: int
    body: bytes


def thumbnails(body: bytes) -> list[Thumbnail]:
    """Create a thumbnail of each size."""
    picture = _decoded(body)
    return [_resized(picture, name, edge) for name, edge in SIZES.items()]


def _decoded(body: bytes) -> Image.Image:
    try:
        picture = Image.open(BytesIO(body), formats=FORMATS)
    except UnidentifiedImageError:
        known = ", ".join(FORMATS)
        raise Unusable("not_an_image", f"This is not an image. Send one of {known}.") from None
    except Image.DecompressionBombError:
        raise _too_large("decompression bomb") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise Unusable("broken", f"The image cannot be read ({error}). Send it again.") from None
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise _too_large(f"{width} × {height} pixels")
    try:
        picture.load()
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise Unusable("truncated", f"The image is truncated ({error}). Send it again.") from None
    return ImageOps.exif_transpose(picture)


def _too_large(why: str) -> Unusable:
    return Unusable("too_large", f"The image is too large ({why}). Send a smaller one.")


def _resized(picture: Image.Image, name: str, edge: int) -> Thumbnail:
    small = picture.convert("RGBA" if "A" in picture.getbands() else "RGB")
    small.thumbnail((edge, edge))
    written = BytesIO()
    small.save(written, "WEBP", quality=80)
    return Thumbnail(name, *small.size, written.getvalue())
