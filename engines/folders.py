"""Where models and their cards lie on this machine; knows folders and environment variables, not what is in them."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

EMBEDDED = Path(__file__).resolve().parent / "weights"
"""Where the weights lie that come with the program."""

SHIPPED_CARDS = Path(__file__).resolve().parent.parent / "configs" / "models"
"""Where the cards lie that come with the program."""

ENVIRONMENT = "DOPPELCAM_MODELS"
"""Environment variable that names the user's model folder."""

OFFLINE = "DOPPELCAM_OFFLINE"
"""Environment variable that lists folders (a memory stick, a share) to look in before anything is downloaded."""


def user_folder() -> Path:
    """Return the folder where a user's own models and cards belong; it need not exist.

    Returns:
        ``$DOPPELCAM_MODELS`` where that is set, else ``models`` in the system's data folder for this program.
    """
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("doppelcam", appauthor=False) / "models"


def offline_folders() -> tuple[Path, ...]:
    """Return the folders of ``$DOPPELCAM_OFFLINE``, in its order, separated like those of ``$PATH``."""
    return tuple(Path(name).expanduser() for name in os.environ.get(OFFLINE, "").split(os.pathsep) if name)


def model_folders() -> tuple[Path, ...]:
    """Return where model files are looked for, in this order: the user's, the offline ones, the embedded ones."""
    return (user_folder(), *offline_folders(), EMBEDDED)


def card_folders() -> tuple[Path, ...]:
    """Return where cards are looked for: those that come with the program, then the user's."""
    return (SHIPPED_CARDS, user_folder())
