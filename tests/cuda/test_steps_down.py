"""A GPU without room: a run does with less, step by step, tells each, and leaves nothing of a try behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from engines.cuda.device import CudaDevice
from engines.errors import OutOfMemoryError
from realtime import app
from realtime.app import fallback
from realtime.config import Settings, default_layer, from_set_options, resolve
from realtime.meter import Meter
from tests.cuda.fake_driver import FakeDriver
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering
MB = 1 << 20
WISH = ("swap.engine=inswapper_128", "swap.boost=2", "enhance.model=gfpgan_1.4")
SWAPPER_MB, ENHANCER_MB = 100, 300


def made(*options: str) -> Settings:
    return resolve([default_layer(), from_set_options([*WISH, *options])])


class Stage:
    """A run's networks and painters, as memory of a driver that has so much and no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernels: HostKernels, room_mb: int) -> None:
        self.kernels, self.room_mb = kernels, room_mb
        self.drivers: list[FakeDriver] = []
        self.tried: list[str] = []
        monkeypatch.setattr(fallback, "open_networks", self.open_networks)
        monkeypatch.setattr(fallback, "_set_up", self.set_up)

    @contextmanager
    def open_networks(self, settings: Settings) -> Iterator[Any]:
        if settings.engine.device == "cpu":
            yield None
            return
        driver = FakeDriver(self.kernels, memory_bytes=self.room_mb * MB)
        self.drivers.append(driver)
        with closing(CudaDevice(driver)) as device, ExitStack() as self.engines:
            yield device

    def set_up(self, settings: Settings, networks: CudaDevice | None, *_: object) -> app.Scene:
        self.tried.append(f"{settings.engine.device} {settings.swap.boost} {settings.enhance.model}".strip())
        if networks is not None:
            self.open_engine(networks, SWAPPER_MB * settings.swap.boost**2, "swapper")
            if settings.enhance.model:
                self.open_engine(networks, ENHANCER_MB, "enhancer")
        return app.Scene(settings, None, None)  # type: ignore[arg-type]  # nobody looks at them

    def open_engine(self, device: CudaDevice, size_mb: int, what: str) -> None:
        self.engines.callback(device.driver.buffer(size_mb * MB, what).free)


@pytest.mark.parametrize(
    ("room_mb", "steps"),
    [
        (2000, []),
        (600, ["without swap.boost"]),
        (300, ["without swap.boost", "not made finer"]),
        (60, ["without swap.boost", "not made finer", "the processor works"]),
    ],
)
def test_each_step_is_taken_where_it_is_needed_and_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, kernels: HostKernels, room_mb: int, steps: list[str]
) -> None:
    stage, told = Stage(monkeypatch, kernels, room_mb), list[str]()
    with fallback.open_run(made(), Meter(), told.append) as (_, scene):
        assert [any(step in line for line in told) for step in steps] == [True] * len(steps)
        assert len(told) == len(steps)
        assert all(": no room for" in line for line in told)
        assert (scene.settings.engine.device == "cpu") == (len(steps) == 3)
        for failed in stage.drivers[: len(steps)]:
            assert failed.allocations() == ()
    assert all(driver.allocations() == () for driver in stage.drivers)


def test_whoever_insists_on_the_gpu_gets_it_or_an_error(monkeypatch: pytest.MonkeyPatch, kernels: HostKernels) -> None:
    stage, told = Stage(monkeypatch, kernels, 60), list[str]()
    run = fallback.open_run(made("engine.device=cuda"), Meter(), told.append)
    with pytest.raises(OutOfMemoryError, match="no room"), run:
        pass
    assert stage.tried == ["cuda 2 gfpgan_1.4", "cuda 1 gfpgan_1.4", "cuda 1"]
    assert len(told) == 2


def test_what_goes_wrong_in_the_run_itself_is_no_reason_to_begin_again(
    monkeypatch: pytest.MonkeyPatch, kernels: HostKernels
) -> None:
    stage = Stage(monkeypatch, kernels, 2000)
    run = fallback.open_run(made(), Meter(), lambda _: None)
    with pytest.raises(OutOfMemoryError, match="later"), run:
        raise OutOfMemoryError("later", "close something")
    assert len(stage.tried) == 1
