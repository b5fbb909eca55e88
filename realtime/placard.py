"""The card that is shown where there is no picture yet or no longer; knows how a card looks, never when one is due."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from realtime.types import U8, Size

Colour = tuple[int, int, int]

_TOP: Colour = (36, 41, 51)
_BOTTOM: Colour = (13, 15, 20)
_ACCENT: Colour = (94, 200, 190)
_TITLE: Colour = (240, 243, 247)
_TEXT: Colour = (160, 170, 184)
"""RGB. The text stands out from the ground at better than 5:1 (WCAG AA)."""

_MARGIN = 0.09
"""Free space at each side, of the width."""


@lru_cache(maxsize=4)  # as many as are shown in a short while; a large picture's card is large too
def placard(size: Size, title: str, lines: tuple[str, ...] = ()) -> U8:
    """Draw a card, e.g. "Camera is frozen" with what is being done about it.

    Args:
        size: of the picture, at least 2x2.
        title: a few words; wrapped and made smaller until it fits.
        lines: sentences under it; what does not fit on the card is left out.

    Returns:
        (H, W, 3) uint8 BGR, C-contiguous and read-only: the same card is handed out again.
    """
    image = Image.fromarray(_ground(size))
    draw = ImageDraw.Draw(image)
    unit = max(6.0, min(size.h, size.w * 0.62) / 20)  # height of a line of text
    room = round(size.w * (1 - 2 * _MARGIN))
    title_font, title_lines = _fit(title, 1.9 * unit, room)
    text_font = _font(unit)
    text_lines = [part for line in lines for part in _wrap(line, text_font, room)]
    title_step, text_step = 1.25 * title_font.size, 1.45 * unit
    height = 1.3 * unit + len(title_lines) * title_step + 0.6 * unit + len(text_lines) * text_step
    top = max(0.0, (size.h - height) / 2)
    left, middle = size.w / 2 - 1.6 * unit, size.w / 2
    draw.rounded_rectangle(
        (left, top, left + 3.2 * unit, top + max(2.0, 0.16 * unit)), radius=0.08 * unit, fill=_ACCENT
    )
    top += 1.3 * unit
    for line in title_lines:
        draw.text((middle, top), line, font=title_font, fill=_TITLE, anchor="ma")
        top += title_step
    top += 0.6 * unit
    for line in text_lines:
        if top + unit > size.h:
            break
        draw.text((middle, top), line, font=text_font, fill=_TEXT, anchor="ma")
        top += text_step
    card = np.ascontiguousarray(np.asarray(image)[..., ::-1])
    card.setflags(write=False)
    return card


def _font(height_px: float) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size=height_px)
    assert isinstance(font, ImageFont.FreeTypeFont)  # Pillow's wheels all carry FreeType
    return font


def _fit(text: str, height_px: float, room: int) -> tuple[ImageFont.FreeTypeFont, list[str]]:
    """The largest font, down to half the height, with which the text takes at most two lines."""
    for shrink in (1.0, 0.85, 0.7, 0.6, 0.5):
        font = _font(height_px * shrink)
        lines = _wrap(text, font, room)
        if len(lines) <= 2 and all(font.getlength(line) <= room for line in lines):
            break
    return font, lines


def _wrap(text: str, font: ImageFont.FreeTypeFont, room: int) -> list[str]:
    """Break a text between words."""
    lines: list[str] = []
    for word in text.split():
        if lines and font.getlength(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _ground(size: Size) -> U8:
    """A dark fall of light, with a grain of half a level so that 8 bits show no bands; (H, W, 3) RGB."""
    y = np.linspace(0.0, 1.0, size.h, dtype=np.float32)[:, None]
    x = np.linspace(-1.0, 1.0, size.w, dtype=np.float32)[None, :]
    light = np.clip(1.0 - y - 0.18 * x * x, 0.0, 1.0)[..., None]
    ground = np.array(_BOTTOM, np.float32) + light * (np.array(_TOP, np.float32) - np.array(_BOTTOM, np.float32))
    grain = np.random.default_rng(0).random((size.h, size.w, 1), np.float32)
    return (ground + grain).astype(np.uint8)
