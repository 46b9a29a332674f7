"""Converts an image file to what a spec stores, and from there to a model's pixels.

A spec stores the resized image losslessly as PNG in base64: it is small, and gives the same numbers on any
machine. Only Pillow decodes, and only PNG and JPEG; numbers are those of the model's own processor.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.domain.errors import SpecError
from engine.domain.extras import naming_extras
from engine.domain.vision import NUM_CHANNELS, VisionSpec

if TYPE_CHECKING:
    from PIL import Image

MAX_FILE_BYTES = 10_000_000
MAX_PIXELS = 25_000_000
FORMATS = ("PNG", "JPEG")
MOSAIC = 7
"""Tiles along each edge of a random picture."""


def encoded(vision: VisionSpec, data: bytes, where: str) -> str:
    """A PNG or JPEG file → the picture as the model sees it, as PNG in base64.

    Raises `SpecError` naming `where` for what is no such file, or too large. Encoding twice changes nothing.
    """
    return _to_base64(_resized(vision, _decoded(data, where)))


@naming_extras()
def random_encoded(vision: VisionSpec, seed: int, request: int) -> str:
    """The random picture of a request in the form of a given one."""
    from PIL import Image

    return _to_base64(Image.fromarray(random_picture(vision, seed, request)))


def of_base64(text: str, where: str) -> bytes:
    """The bytes of a picture sent as base64. Raises `SpecError` for other text, or for too many."""
    if len(text) > MAX_FILE_BYTES * 4 // 3 + 4:
        raise _refused(where, f"is larger than {MAX_FILE_BYTES / 1e6:.0f} MB")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refused(where, f"is no base64 ({error})") from error


@lru_cache(maxsize=4)
def picture_of(vision: VisionSpec, image: str) -> Any:
    """The picture that a spec keeps → colours, uint8 [H, W, 3]. Raises `SpecError` for any other size."""
    where = "workload.image"
    picture = _decoded(of_base64(image, where), where)
    if picture.size != (vision.image_size, vision.image_size):
        width, height = picture.size
        raise _refused(where, f"is {width} x {height} pixels, expected {vision.image_size} of each edge")
    colours = np.asarray(picture)
    colours.setflags(write=False)
    return colours


def random_picture(vision: VisionSpec, seed: int, request: int) -> Any:
    """A mosaic of coloured tiles, the same for the same seed and request on any machine: uint8 [H, W, 3]."""
    digest = hashlib.sha256(f"{seed}/{request}/picture".encode()).digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "big")))
    tiles = generator.integers(0, 256, (MOSAIC, MOSAIC, NUM_CHANNELS), dtype=np.uint8)
    tile_of = np.arange(vision.image_size) * MOSAIC // vision.image_size
    return tiles[tile_of][:, tile_of]


def pixels(vision: VisionSpec, picture: Any) -> Any:
    """Colours uint8 [H, W, 3] → the numbers that the model takes: float32 [3, H, W]."""
    mean, std = np.array(vision.mean, np.float32), np.array(vision.std, np.float32)
    scaled = picture.astype(np.float32) * np.float32(1 / 255)
    return np.ascontiguousarray(((scaled - mean) / std).transpose(2, 0, 1))


@naming_extras()
def _decoded(data: bytes, where: str) -> Image.Image:
    """A picture, decoded; its sizes are checked before any pixel is."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if len(data) > MAX_FILE_BYTES:
        raise _refused(where, f"is larger than {MAX_FILE_BYTES / 1e6:.0f} MB")
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as picture:
            width, height = picture.size
            if width * height > MAX_PIXELS:
                raise _refused(where, f"has more than {MAX_PIXELS} pixels")
            upright: Image.Image = ImageOps.exif_transpose(picture)
            return upright.convert("RGB")
    except Image.DecompressionBombError as error:  # Pillow's own limit is higher
        raise _refused(where, f"has more than {MAX_PIXELS} pixels") from error
    except UnidentifiedImageError as error:
        raise _refused(where, "is neither PNG nor JPEG") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise _refused(where, f"is a damaged picture ({error})") from error


def _to_base64(picture: Image.Image) -> str:
    out = BytesIO()
    picture.save(out, format="PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")


def _resized(vision: VisionSpec, picture: Image.Image) -> Image.Image:
    """Resize as the model's processor: scale both edges, or scale the shorter one and crop the middle."""
    from PIL import Image

    size, resample = vision.image_size, Image.Resampling[vision.resample.upper()]
    if not vision.crop:
        return picture.resize((size, size), resample)
    width, height = picture.size
    short = min(width, height)
    wide, high = int(size * width / short), int(size * height / short)
    fitted = picture.resize((wide, high), resample)
    left, top = (wide - size) // 2, (high - size) // 2
    return fitted.crop((left, top, left + size, top + size))


def _refused(where: str, why: str) -> SpecError:
    return SpecError(f"{where}: {why}: give a PNG or JPEG file.", [("workload.image", why)])
