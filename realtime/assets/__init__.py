"""Pictures that ship with the program: two public-domain portraits and what the demo scene needs; see NOTICE."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ASSETS: Final = Path(__file__).parent
"""The folder itself."""


def demo_photo() -> Path:
    """Portrait of the person whom the demo source animates (glasses, hat, closed mouth), 512x600 JPEG."""
    return ASSETS / "demo_photo.jpg"


def sample_source() -> Path:
    """Portrait to swap from when the user has none at hand (front-facing, fringe, open smile), 512x512 JPEG."""
    return ASSETS / "sample_source.jpg"
