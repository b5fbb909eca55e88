"""Reads a photo that nobody has vetted: small or huge, whole or broken; knows pictures, not faces."""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from realtime.errors import IdentityError
from realtime.suggest import file_trouble
from realtime.types import U8

MAX_PIXELS = 50_000_000
"""A larger photo is refused before it is decoded: a PNG of 20 KB can unpack to gigabytes."""

FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""What is opened where Pillow was built with it. It also knows formats that start other programs (EPS) or are no
photos; those stay shut."""

BACKDROP = (128, 128, 128)
"""Shown through transparent pixels: the grey that shifts the brightness of a cut-out face the least."""

_BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError, struct.error, zlib.error)
# What Pillow's decoders are known to raise on damaged data; none of them means a mistake of ours here.


def read_photo(path: str | Path) -> U8:
    """Read a still picture the way a viewer shows it.

    The turn that a phone notes in EXIF is applied; transparency is laid over grey; grey, palette, CMYK and 16-bit
    pictures become 8-bit colour; of an animation the first picture is taken.

    Args:
        path: of a file in one of ``FORMATS``.

    Returns:
        (H, W, 3) uint8 BGR, C-contiguous, owned by the caller.

    Raises:
        IdentityError: missing, empty, no picture, damaged, or more than ``MAX_PIXELS``.
    """
    path = Path(path)
    if trouble := file_trouble(path):
        raise IdentityError(*trouble)
    try:
        with warnings.catch_warnings():
            # Pillow warns about large pictures and odd metadata; the size is judged below and the rest is harmless.
            warnings.simplefilter("ignore")
            Image.init()
            with Image.open(path, formats=[known for known in FORMATS if known in Image.OPEN]) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise _too_large(path, f"{image.width}x{image.height}, {image.width * image.height / 1e6:.0f}")
                return _decode(image)
    except UnidentifiedImageError:
        raise IdentityError(f"{path} is not a picture", "give a JPEG, PNG, WebP, TIFF or BMP file") from None
    except Image.DecompressionBombError:
        raise _too_large(path, "far more than 50") from None
    except _BROKEN as error:
        hint = "open it in a picture viewer; if that fails too, copy or export it again"
        raise IdentityError(f"{path} is damaged: {error}", hint) from error


def _too_large(path: Path, megapixels: str) -> IdentityError:
    return IdentityError(f"{path} has {megapixels} megapixels; at most 50 are read", "scale it down, 2 are plenty")


def _decode(image: Image.Image) -> U8:
    image.load()
    upright = ImageOps.exif_transpose(image)
    if upright.mode == "F" or upright.mode.startswith("I"):
        grey = _grey_8bit(upright)
        return np.repeat(grey[..., np.newaxis], 3, axis=2)
    if upright.mode in {"LA", "PA", "La", "RGBa", "RGBA"} or "transparency" in upright.info:
        rgba = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", rgba.size, (*BACKDROP, 255)), rgba)
    rgb = np.asarray(upright.convert("RGB"))
    return np.ascontiguousarray(rgb[..., ::-1])


def _grey_8bit(image: Image.Image) -> U8:
    """Bring 16-bit, 32-bit and float grey to 0..255; Pillow's own conversion clips everything above 255 to white."""
    grey = np.asarray(image).astype(np.float64)
    if not np.isfinite(grey).all():
        raise ValueError("the picture holds values that are no numbers")
    peak = grey.max(initial=0.0)
    full = next((full for full in (1.0, 255.0, 65535.0) if peak <= full), peak) if image.mode == "F" else 65535.0
    return np.clip(grey * (255.0 / full) + 0.5, 0, 255).astype(np.uint8)
