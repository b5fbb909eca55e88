"""A program: puts a back end through its contract on the fake libcuda, and beyond it; prints what it found as JSON."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from engines.cuda.driver import Driver
from engines.errors import DeviceError
from tests.cuda.driver_contract import LAWS, filled, numbers
from tests.cuda.obeys import broken_laws, opener


def counts() -> dict[str, int]:
    """What the library has counted."""
    text = ctypes.create_string_buffer(1000)
    ctypes.CDLL("libcuda.so.1").fake_counts(text, len(text))
    counted: dict[str, int] = json.loads(text.value)
    return counted


def there_and_back(driver: Driver, ordered: bool) -> dict[str, Any]:
    """Copy in on one stream and out on another, with the wait between them or without."""
    one, other, copied, ended = driver.stream("one"), driver.stream("other"), driver.event(), driver.event()
    memory, sent, back = driver.buffer(100, "memory"), filled(driver, numbers(100, 1)), driver.pinned(100, "back")
    back.array[:] = 0
    driver.copy_in(memory.address, sent.array, one)
    one.record(copied)
    if ordered:
        other.wait_for(copied)
    driver.copy_out(back.array, memory.address, other)
    other.record(ended)
    ran_early = ended.done() or bool(back.array.any())
    ended.wait()
    return {"early": ran_early, "right": bool((back.array == sent.array).all()), "first": int(back.array[0])}


def order(driver: Driver) -> list[str]:
    """What the streams were given and ran."""
    there_and_back(driver, ordered=True)
    log = ctypes.CDLL("libcuda.so.1").fake_log
    log.restype = ctypes.c_char_p
    return str(log().decode()).splitlines()[-10:]


def refused(work: Callable[[], object]) -> list[str]:
    """The words of the error that some work ends with."""
    try:
        work()
    except DeviceError as error:
        return [type(error).__name__, error.message, error.hint]
    return []


def in_another_thread(work: Callable[[], object]) -> list[str]:
    """The same, in a thread that did not attach."""
    words: list[str] = []
    thread = threading.Thread(target=lambda: words.extend(refused(work)))
    thread.start()
    thread.join()
    return words


def refusals(driver: Driver) -> dict[str, list[str]]:
    """What a program may not do."""
    stream, untimed = driver.stream("s"), driver.event()
    memory, pageable = driver.buffer(100, "memory"), np.zeros(100, np.uint8)
    stream.record(untimed)
    untimed.wait()
    return {
        "copy from memory that is not pinned": refused(lambda: driver.copy_in(memory.address, pageable, stream)),
        "copy to nowhere": refused(lambda: driver.copy_in(4096, filled(driver, numbers(100)).array, stream)),
        "time that was not measured": refused(lambda: untimed.ms_since(untimed)),
        "too much pinned memory": refused(lambda: driver.pinned(1 << 50, "everything")),
        "a thread that did not attach": in_another_thread(lambda: driver.buffer(100, "memory")),
    }


def breaking(driver: Driver) -> dict[str, Any]:
    """Let work fail on the device, and see how the program hears of it; nothing can be done with the GPU after that."""
    stream, memory, sent = driver.stream("s"), driver.buffer(100, "memory"), filled(driver, numbers(100))
    left = driver.buffer(100, "left")
    driver.copy_in(memory.address, sent.array, stream)
    memory.free()
    ended = driver.event()
    stream.record(ended)
    return {
        "told": refused(ended.wait),
        "later": refused(lambda: driver.buffer(100, "more")),
        "freeing": refused(left.free) + refused(sent.free),
    }


def main(target: str) -> dict[str, Any]:
    """Everything that was found."""
    opened = opener(target)

    def with_driver(look: Callable[[Driver], Any]) -> Any:
        driver = opened()
        try:
            return look(driver)
        finally:
            driver.close()

    found = {
        "laws": broken_laws(opened, LAWS),
        "gpu": with_driver(lambda driver: [driver.gpu.name, driver.gpu.capability, driver.gpu.driver]),
        "with a wait": with_driver(lambda driver: there_and_back(driver, ordered=True)),
        "without": with_driver(lambda driver: there_and_back(driver, ordered=False)),
        "order": with_driver(order),
        "refusals": with_driver(refusals),
        "counts": counts(),
    }
    driver = opened()
    found["broken"] = breaking(driver)
    refused(driver.close)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
