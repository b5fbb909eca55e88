"""Photos that were sent to a run: checked, kept for as long as it lasts, then gone; knows no face."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from realtime.errors import IdentityError
from realtime.photos import read_photo

_SUFFIXES = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"RI": ".webp", b"GI": ".gif", b"BM": ".bmp"}
"""By how a file begins: what it is called says nothing."""


class Album:
    """A folder of photos that only this user can read; it is gone after ``close``."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="doppelcam-photos-")
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._count = 0

    def keep(self, name: str, data: bytes) -> str:
        """See :meth:`realtime.desk.desk.Desk.keep_photo`.

        Raises:
            IdentityError: it is no picture, damaged or too large.
        """
        shown = Path(name.replace("\\", "/")).name[:100] or "the photo"
        with self._lock:
            self._count += 1
            photo = f"photo-{self._count}{_SUFFIXES.get(data[:2], '.photo')}"
        path = self.path(photo)
        path.write_bytes(data)
        try:
            read_photo(path)
        except IdentityError as error:
            path.unlink()
            raise IdentityError(error.message.replace(str(path), shown), error.hint) from error
        self._names[photo] = shown
        return photo

    def __contains__(self, photo: str) -> bool:
        return photo in self._names

    def holds(self, path: str) -> bool:
        """Whether a file is one of them, and gone after the run."""
        return Path(path).parent == Path(self._folder.name)

    def path(self, photo: str) -> Path:
        """Where it is."""
        return Path(self._folder.name) / photo

    def name_of(self, path: str) -> str:
        """What a photo is called, for people: as it was sent, or as the file is."""
        photo = Path(path).name
        return self._names.get(photo, photo)

    def close(self) -> None:
        """Delete them all."""
        self._folder.cleanup()
