"""SCRFD on a plan, on the detect stream of the NVIDIA device: the faces are those that the processor finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import onnxruntime as ort
import pytest

pytest.importorskip("onnx", reason="the tests change networks with onnx, which is in the extra dev")

from engines.card import ModelCard, load_card
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from engines.errors import EngineError
from engines.graph import prepare
from engines.onnxrt import OnnxRuntimeEngine
from engines.plan import keep
from engines.sizes import profile_of
from engines.tensorrt.engine import TensorRtEngine
from engines.tensorrt.open import open_planned
from realtime.detect import Detection
from realtime.detect.scrfd import ScrfdDetector
from realtime.types import U8
from tests.cuda.fake_driver import FakeDriver
from tests.kernels.host import HostKernels
from tests.networks import with_free_size
from tests.real import clip
from tests.trt.fake_tensorrt import plan_of
from tests.trt.plans import MODEL_SHA256, gpu, note, trt_on

pytestmark = [pytest.mark.trt_api, pytest.mark.data]
SIZE = (320, 256)


@pytest.fixture
def free(data_dir: Path, tmp_path: Path) -> tuple[ModelCard, Path]:
    """The card of a network of any size, looked at 320 pixels wide, and its file."""
    path = with_free_size(data_dir / "models" / "scrfd_500m_kps.onnx", tmp_path / "free.onnx")
    card = load_card("scrfd_500m")
    return replace(
        card,
        inputs=(replace(card.inputs[0], name="images"),),
        outputs=tuple(replace(spec, name=f"out{i}") for i, spec in enumerate(card.outputs)),
        decode={**card.decode, "side": SIZE[0]},
    ), path


def sized(card: ModelCard, path: Path, size: tuple[int, int]) -> tuple[ModelCard, bytes]:
    """The card with every shape for one size, and the network that the builder prepares for it."""
    width, height = size
    fixed = replace(card, inputs=(replace(card.inputs[0], shape=(1, 3, height, width)),))
    model = prepare(path, fixed).model.SerializeToString()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    made = session.run([spec.name for spec in card.outputs], {"images": np.zeros((1, 3, height, width), np.float32)})
    outputs = tuple(replace(spec, shape=one.shape) for spec, one in zip(card.outputs, made, strict=True))
    return replace(fixed, outputs=outputs), model


def opened(
    free: tuple[ModelCard, Path],
    driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
    device: CudaDevice,
    size: tuple[int, int] | None = None,
) -> TensorRtEngine:
    monkeypatch.setattr("engines.tensorrt.open.load", lambda: trt_on(driver, profile=profile_of(free[0])))
    monkeypatch.setattr("engines.tensorrt.open.fingerprint", lambda *_: MODEL_SHA256)
    return open_planned(*free, device=device, size=size)


@pytest.fixture
def detectors(
    free: tuple[ModelCard, Path], kernels: HostKernels, monkeypatch: pytest.MonkeyPatch
) -> tuple[ScrfdDetector, ScrfdDetector, CudaDevice]:
    """On the GPU, on the processor, and the GPU."""
    card, path = free
    built, model = sized(card, path, SIZE)
    keep(built, plan_of(model), b"", note(built))
    driver = gpu(0, kernels)
    device = CudaDevice(driver)
    engine = opened(free, driver, monkeypatch, device)
    assert engine.inputs[0].size == SIZE
    assert [spec.shape for spec in engine.outputs] == [spec.shape for spec in built.outputs]
    return (
        ScrfdDetector(card, engine, device),
        ScrfdDetector(built, OnnxRuntimeEngine(built, path), CpuDevice()),
        device,
    )


def close(ours: list[Detection], right: list[Detection]) -> None:
    assert len(ours) == len(right) == 1
    assert abs(ours[0].score - right[0].score) < 0.02
    np.testing.assert_allclose(ours[0].points, right[0].points, atol=0.5)


def pictures(data_dir: Path) -> list[U8]:
    return [np.ascontiguousarray(picture) for picture in clip(data_dir, "milk", 6)]


def test_faces_are_those_that_the_processor_finds(
    detectors: tuple[ScrfdDetector, ScrfdDetector, CudaDevice], data_dir: Path
) -> None:
    ours, right, device = detectors
    for pixels in pictures(data_dir):
        device.begin(pixels)
        close(ours.detect(pixels), right.detect(pixels))
        device.finish(pixels)
    photo = pictures(data_dir)[0]
    close(ours.detect_everywhere(photo), right.detect_everywhere(photo))  # no frame, and none begun


@pytest.mark.parametrize("size", [SIZE, (320, 320)])
def test_one_plan_of_several_sizes_finds_the_same_faces(
    free: tuple[ModelCard, Path],
    size: tuple[int, int],
    kernels: HostKernels,
    monkeypatch: pytest.MonkeyPatch,
    data_dir: Path,
) -> None:
    card, path = free
    keep(card, plan_of(prepare(path, card).model.SerializeToString()), b"", note(card, sizes=card.sizes))
    driver = gpu(0, kernels)
    device = CudaDevice(driver)
    engine = opened(free, driver, monkeypatch, device, size)
    assert engine.inputs[0].size == size
    ours = ScrfdDetector(card, engine, device)
    right = ScrfdDetector(card, OnnxRuntimeEngine(sized(card, path, size)[0], path), CpuDevice())
    for pixels in pictures(data_dir):
        device.begin(pixels)
        close(ours.detect(pixels), right.detect(pixels))
        device.finish(pixels)


def test_in_passing_what_was_seen_before_is_told_and_only_the_frame_is_waited_for(
    detectors: tuple[ScrfdDetector, ScrfdDetector, CudaDevice], data_dir: Path
) -> None:
    ours, right, device = detectors
    driver, before = cast(FakeDriver, device.driver), None
    for number, pixels in enumerate(pictures(data_dir)):
        device.begin(pixels)
        seen = ours.detect(pixels, views=1)
        if before is None:
            assert not seen
        else:
            close(seen, right.detect(before))
        device.submit(pixels)
        waits = driver.waits
        device.finish(pixels)
        assert driver.waits - waits == 1
        before = pictures(data_dir)[number]


def test_without_a_plan_of_any_size_it_says_how_to_get_one(
    free: tuple[ModelCard, Path], kernels: HostKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = gpu(None, kernels)
    with pytest.raises(EngineError, match="has been built") as caught:
        opened(free, driver, monkeypatch, CudaDevice(driver))
    assert caught.value.hint == "doppelcam models build scrfd_500m"
