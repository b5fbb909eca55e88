"""Tests that need a GPU: skipped where there is none, unless one is required; they print what they find as a table."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from engines.cuda import opening
from engines.cuda.device import CudaDevice
from tests.hardware.table import Table

TABLE = pytest.StashKey[Table]()


@pytest.fixture(scope="session")
def gpu(request: pytest.FixtureRequest) -> str:
    """The GPU, in words; skips, or fails with ``--require cuda``, where there is none."""
    found = opening.probe()
    if not found.ok:
        wanted = request.config.getoption("--require") == "cuda"
        (pytest.fail if wanted else pytest.skip)(f"{found.reason}; {found.hint}")
    return found.reason


@pytest.fixture
def device(gpu: str) -> Iterator[CudaDevice]:
    """The GPU, opened for one test."""
    opened = CudaDevice()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """The table; printed at the very end, whatever failed."""
    made = request.config.stash[TABLE] = Table()
    began_s = time.monotonic()
    yield made
    made.tell("all of this took", f"{time.monotonic() - began_s:.0f} s")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if config.stash.get(TABLE, None):
        terminalreporter.section("on this GPU")
        terminalreporter.write_line(config.stash[TABLE].text())
