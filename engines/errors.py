"""The root of the error tree and the machine room's own branches; knows how a person is told, not where.

The root lives here and not in ``realtime`` because the one arrow is ``realtime -> engines``: the machine room raises
errors of the same tree and may not import from the stage.
"""

from __future__ import annotations


def install_extra(extra: str) -> str:
    """Say how an optional part of the program is installed: from its folder, since no package registry has it.

    Args:
        extra: name under ``[project.optional-dependencies]`` of pyproject.toml, e.g. "neural".

    Returns:
        An instruction, for a hint.
    """
    return f"in the program's folder: pip install -e '.[{extra}]' (with the pip of the environment that runs it)"


class LiveError(Exception):
    """An error that a person can act on: what went wrong, and what to try.

    The command line prints ``error: <message>`` and ``try: <hint>`` and exits with ``exit_code``; a traceback is for
    bugs only.

    Attributes:
        message: what went wrong, with the value that was wrong. One sentence, no trailing full stop needed.
        hint: what to try, as an instruction. Never empty.
        exit_code: 2 bad settings or input files, 3 a source or sink, 4 a model, engine or device, 5 consent.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ModelError(LiveError):
    """A model file or its card is missing, damaged, or not what it says it is."""

    exit_code = 4


class DeviceError(LiveError):
    """A device (processor, GPU) cannot be used as asked."""

    exit_code = 4


class OutOfMemoryError(DeviceError):
    """The device has no room for something; whoever asked may do with less."""


class EngineError(LiveError):
    """A runtime cannot load or run a model."""

    exit_code = 4
