"""Waits until streams have done all that they were given: before memory is freed, never within the loop."""

from __future__ import annotations

from contextlib import suppress

from engines.cuda.driver import Event, Stream
from engines.errors import DeviceError


def wait_until_idle(event: Event, *streams: Stream) -> None:
    """Wait for streams.

    Args:
        event: to wait with; what it marked before is forgotten.
        streams: that are waited for.
    """
    with suppress(DeviceError):  # a GPU that has failed does nothing any more, and has told so
        for stream in streams:
            stream.record(event)
            event.wait()
