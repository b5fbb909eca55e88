"""Tests that need a GPU: skipped where there is none, unless one is required; they print what they find as a table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.cuda import opening


@pytest.fixture(scope="session")
def gpu(request: pytest.FixtureRequest) -> str:
    """The GPU, in words; skips, or fails with ``--require cuda``, where there is none."""
    found = opening.probe()
    if not found.ok:
        wanted = request.config.getoption("--require") == "cuda"
        (pytest.fail if wanted else pytest.skip)(f"{found.reason}; {found.hint}")
    return found.reason


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> Iterator[list[tuple[str, str]]]:
    """Lines of the table: what was measured, and the figure; printed when all have run."""
    lines: list[tuple[str, str]] = []
    yield lines
    if lines:
        width = max(len(name) for name, _ in lines)
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print("\n\n" + "\n".join(f"{name:<{width}}  {figure}" for name, figure in lines))
