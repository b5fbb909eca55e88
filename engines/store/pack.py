"""Takes a file out of an InsightFace pack, which that package's own downloader brings; knows no card's contract."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from engines.errors import ModelError, install_extra
from engines.store import disk

RELEASES = "https://github.com/deepinsight/insightface/releases/download/model-zoo/"
"""Where InsightFace keeps its packs, for a person with a browser (a test compares it with the package)."""


def kept_by_insightface(pack: str) -> Path:
    """Return the folder where InsightFace keeps a pack that it fetched for itself; it need not exist, or be whole."""
    return Path("~/.insightface/models").expanduser() / pack


@contextmanager
def unpacked(pack: str, folder: Path) -> Iterator[Path]:
    """Have a pack's files for a while.

    Args:
        pack: name of the pack, e.g. "buffalo_l".
        folder: where it may be unpacked; exists. The caller holds the lock of a file in it.

    Yields:
        A folder with the pack's files, perhaps in folders of their own.

    Raises:
        ModelError: the package is not installed, or the pack cannot be fetched.
    """
    room = folder / f".{pack}.unpacked"
    shutil.rmtree(room, ignore_errors=True)  # what an interrupted run left looks complete to the downloader
    try:
        yield _download(pack, room)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _download(pack: str, room: Path) -> Path:
    browser = f"fetch {RELEASES}{pack}.zip with a browser and unpack it, then: doppelcam models add FILE"
    try:
        from insightface.utils.storage import ensure_available  # noqa: PLC0415  (an extra, and half a second)
    except ImportError as error:
        raise ModelError(
            f"the pack {pack} comes through the package insightface: {error}",
            f"{install_extra('neural')}; or {browser}",
        ) from error
    hint = f"check the network (a proxy goes into HTTPS_PROXY) and try again; or {browser}"
    disk.make_folder(room)
    try:
        with redirect_stdout(sys.stderr):  # it prints
            return Path(ensure_available("models", pack, root=str(room)))
    except zipfile.BadZipFile as error:
        raise ModelError(f"the pack {pack} arrived damaged: {error}", hint) from error
    except RuntimeError as error:  # its own, for every answer that is not 200
        raise ModelError(f"the pack {pack} cannot be fetched: {error}", hint) from error
    except OSError as error:
        if error.errno is None:  # requests makes its errors of the network a kind of OSError
            raise ModelError(f"the pack {pack} cannot be fetched: {error}", hint) from error
        with disk.plain_errors(room):
            raise
