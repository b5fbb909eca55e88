"""The stage's branches of the error tree (root in ``engines.errors``); knows kinds of trouble, not their cure."""

from __future__ import annotations

from engines.errors import DeviceError, EngineError, LiveError, ModelError, OutOfMemoryError, install_extra

__all__ = [
    "ConfigError",
    "ConsentError",
    "DeviceError",
    "EngineError",
    "IdentityError",
    "LiveError",
    "ModelError",
    "OutOfMemoryError",
    "SinkError",
    "SourceError",
    "install_extra",
]


class ConfigError(LiveError):
    """A setting is unknown, of the wrong type or out of range."""

    exit_code = 2


class IdentityError(LiveError):
    """A source photo cannot be used: missing, damaged, too large, no face in it."""

    exit_code = 2


class SourceError(LiveError):
    """Pictures cannot be had: a camera is busy, gone or frozen, a file is damaged, a stream is unreachable.

    Attributes:
        fatal: ``False`` when opening the same source again may help (unplugged camera, dropped stream).
    """

    exit_code = 3

    def __init__(self, message: str, hint: str, *, fatal: bool = True) -> None:
        super().__init__(message, hint)
        self.fatal = fatal


class SinkError(LiveError):
    """Pictures cannot be delivered: no virtual camera, disk full, window closed.

    Attributes:
        fatal: ``False`` when opening the same sink again may help.
    """

    exit_code = 3

    def __init__(self, message: str, hint: str, *, fatal: bool = True) -> None:
        super().__init__(message, hint)
        self.fatal = fatal


class ConsentError(LiveError):
    """The face of a photo may not be used."""

    exit_code = 5
