"""Puts a back end of the driver through its contract, on the fake libcuda; a program of its own, printing JSON."""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
import threading
from typing import Any

import numpy as np

from engines.cuda.driver import Driver, OutOfMemoryError


def main(target: str) -> dict[str, Any]:
    """Everything that was found."""
    module, _, name = target.partition(":")
    driver: Driver = getattr(importlib.import_module(module), name)()
    found: dict[str, Any] = {
        "gpu": [driver.gpu.name, driver.gpu.capability, driver.gpu.driver],
        "name": driver.back_end,
    }
    one, other = driver.stream("one"), driver.stream("other", urgent=True)
    found["handles"] = [driver.stream_of(s.handle) is s and bool(s.handle) for s in (one, other)]
    sent, back = driver.pinned(1000, "sent"), driver.pinned(1000, "back")
    memory, copied, copied_too = driver.buffer(1000, "memory"), driver.event(timing=True), driver.event(timing=True)
    found["allocations"] = driver.allocations()
    found["fresh events have happened"] = copied.done()
    sent.array[:] = np.arange(1000) % 251

    def there_and_back(ordered: bool) -> bool:
        back.array[:] = 0
        driver.copy_in(memory.address, sent.array, one)
        one.record(copied)
        if ordered:
            other.wait_for(copied)
        driver.copy_out(back.array, memory.address, other)
        other.record(copied_too)
        found["nothing ran before it had to"] = not copied_too.done() and not back.array.any()
        copied_too.wait()
        return bool((back.array == sent.array).all())

    found["without a wait"] = there_and_back(ordered=False)
    found["poison"] = int(back.array[0])
    found["with a wait"] = there_and_back(ordered=True)
    found["time"] = copied_too.ms_since(copied)
    rows = back.array[: 3 * 5].reshape(3, 5)
    driver.copy_rows_out(rows, memory.address + 10, 100, other)
    other.record(copied_too)
    copied_too.wait()
    found["rows"] = bool((rows == sent.array.reshape(10, 100)[:3, 10:15]).all())
    try:
        driver.buffer(1 << 30, "too much")
    except OutOfMemoryError as error:
        found["no room"] = [error.message, error.hint]
    found["free"] = driver.free_bytes()

    def elsewhere() -> None:
        with driver.attached():
            driver.copy_in(memory.address, sent.array, one)
            one.record(copied)
            copied.wait()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    for part in (sent, back, memory, memory):
        part.free()
    found["left"] = driver.allocations()
    driver.close()
    driver.close()
    text = ctypes.create_string_buffer(1000)
    ctypes.CDLL("libcuda.so.1").fake_counts(text, len(text))
    found["counts"] = json.loads(text.value)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
