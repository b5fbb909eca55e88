"""What CUDA says, in words for people; knows no library of CUDA."""

from __future__ import annotations

from engines.errors import DeviceError

START_AGAIN = "start the program again, this GPU takes no more work from it; if it stays so, report this as a bug"
HINTS = {
    "illegal": START_AGAIN,
    "misaligned": START_AGAIN,
    "launch failure": START_AGAIN,
    "timed out": "close other programs that use the GPU: one that has a screen may not work so long at once",
    "busy or unavailable": "close the program that has the GPU for itself, or as administrator: nvidia-smi -c DEFAULT",
    "driver combination": "restart the computer: the NVIDIA driver was updated, and the old one still runs",
    "insufficient": "update the NVIDIA driver",
}
"""A part of what CUDA says (``cuGetErrorString``, the same words in every library) -> what to try."""
OTHERWISE = "update the NVIDIA driver; if it stays so, report this as a bug"


def failure(what: str, said: str) -> DeviceError:
    """Turn an error of CUDA into one for people.

    Args:
        what: the program did.
        said: by CUDA.
    """
    hint = next((hint for words, hint in HINTS.items() if words in said.lower()), OTHERWISE)
    return DeviceError(f"the GPU failed at {what}: {said}", hint)
