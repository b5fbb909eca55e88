"""Fixtures that every tier shares; knows where the real test material may lie, never what is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from realtime.detect.ssd import SsdDetector
    from realtime.landmarks import MeshNet
    from realtime.swappers.mesh import MeshIdentity
    from tests.actor import Actor
    from tests.faces import Eyes
    from tests.kernels.host import HostKernels
    from tests.modularnets import Modular

# A property is about values, never about how busy the machine is. A gate must say the same twice; hunting for new
# counterexamples is for developers' machines.
settings.register_profile(
    "doppelcam", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("doppelcam")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run demand hardware instead of skipping what needs it."""
    parser.addoption("--require", choices=["cuda"], help="hardware that must be there: its tests fail where it is not")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with real clips, photos and weights beside the project; skips where a checkout has none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real clips and photos (../shared/data) are not part of a plain checkout")
    return folder


@pytest.fixture(scope="session")
def eyes() -> Iterator[Eyes]:
    """The embedded networks, loaded once for all tests."""
    from tests.faces import Eyes  # the networks load only for tests that ask for them

    opened = Eyes()
    yield opened
    opened.close()


@pytest.fixture
def detector(eyes: Eyes) -> SsdDetector:
    """The embedded detector."""
    return eyes.detector


@pytest.fixture
def net(eyes: Eyes) -> MeshNet:
    """The embedded mesh network."""
    return eyes.net


@pytest.fixture(scope="session")
def source(eyes: Eyes) -> MeshIdentity:
    """A source face for the mesh swap: a fringe, and an open smile that shows teeth."""
    from realtime.assets import sample_source

    return eyes.identity(sample_source())


@pytest.fixture(scope="session")
def actor(eyes: Eyes) -> Actor:
    """A drawn person with wrinkles and glasses."""
    from realtime.assets import demo_photo
    from tests.actor import Actor

    return Actor(eyes.identity(demo_photo()).texture)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> HostKernels:
    """The CUDA kernels of the program, built by g++ once for all tests; skips where there is none."""
    from tests.kernels.host import HostKernels, compiler

    if compiler() is None:
        pytest.skip("g++ is not installed")
    return HostKernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def one_torch_thread() -> None:
    """Threads that wait for each other on a busy machine make these small networks slower, not faster."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def modular(one_torch_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Modular:
    """The modular swapper and its export."""
    from tests.modularnets import export_checkpoint  # needs the extra train

    return export_checkpoint(tmp_path_factory.mktemp("modular"))
