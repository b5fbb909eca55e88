"""The kernels, built once for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.kernels.host import HostKernels, compiler


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> HostKernels:
    """The kernels of the program, built by g++; skips where there is none."""
    if compiler() is None:
        pytest.skip("g++ is not installed")
    return HostKernels(tmp_path_factory.mktemp("kernels"))
