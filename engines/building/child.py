"""The process that builds: reads what to do from its input, tells on its output, ends when nobody listens.

``python -m engines.building.child``. TensorRT, and what it loads, may write to the standard output, take all memory or
crash: none of that reaches the program.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from typing import BinaryIO

from engines.building.messages import Failed, Message, Request, read_request, to_line
from engines.building.network import Tell
from engines.errors import LiveError, install_extra

_POLITENESS = 5
"""Steps down in the processor's order, so that a camera that runs meanwhile does not stutter."""
_INPUT = 0
"""Number of the file that is listened to."""
_ABANDONED = 3
"""Exit code where whoever asked is gone."""


class Teller:
    """Writes messages, from any thread.

    Args:
        file: written to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._lock = file, threading.Lock()

    def __call__(self, message: Message) -> bool:
        """Write a message; says whether anybody still reads. Never raises: TensorRT's threads would not survive it."""
        try:
            with self._lock:
                self._file.write(to_line(message))
                self._file.flush()
        except OSError:
            return False
        return True


def main() -> None:
    """Do what is asked and end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the other one decides
    faulthandler.enable()
    if hasattr(os, "nice"):
        os.nice(_POLITENESS)
    tell = Teller(_own_output())
    request = read_request(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_asker, name="asker", daemon=True).start()
    tell(_outcome(request, tell))


def _outcome(request: Request, tell: Tell) -> Message:
    try:
        from engines.building.work import work  # noqa: PLC0415  (slow, and may fail: then that is told)

        return work(request, tell)
    except ImportError as error:
        return Failed("EngineError", f"a plan cannot be built: {error}", install_extra("gpu,neural"))
    except LiveError as error:
        return Failed(type(error).__name__, error.message, error.hint)


def _own_output() -> BinaryIO:
    """Keep the output for messages; what libraries print goes to the error output from now on."""
    mine = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return mine


def _end_with_the_asker() -> None:
    """Wait until the input ends, which it does with whoever asked, however he ended.

    Not by Python's own file: at the end of this process its lock would be held, which Python ends with a crash.
    """
    while os.read(_INPUT, 1):
        pass
    os._exit(_ABANDONED)


if __name__ == "__main__":
    main()
