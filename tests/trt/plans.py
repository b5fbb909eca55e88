"""Plans of small networks for the fake TensorRT, kept as the builder keeps them, and a GPU to run them on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.cuda.driver import Gpu
from engines.fp16.convert import to_fp16
from engines.graph import prepare
from engines.plan import Plan, keep
from engines.sidecar import Sidecar
from engines.tensorrt.engine import TensorRtEngine
from tests.cards import Net
from tests.cuda.fake_driver import FakeDriver
from tests.halfnets import inswapper_like
from tests.kernels.host import HostKernels
from tests.trt.fake_tensorrt import VERSION, FakeTensorRt, plan_of

GPU = Gpu("Fake GPU", (8, 6), 1 << 31, "13.0", "GPU-fake")
MODEL_SHA256 = hashlib.sha256(b"the model").hexdigest()


def swapper(side: int = 32) -> Net:
    """A swapper of inswapper's kind: its identity goes through Gemms that no frame changes."""
    return inswapper_like(side, blocks=1)


def note(card: ModelCard, style_inputs: tuple[str, ...] = (), **other: Any) -> Sidecar:
    """The note of a plan that was built for :data:`GPU`."""
    shapes = {spec.name: spec.shape for spec in (*card.inputs, *card.outputs)}
    sidecar = Sidecar(
        card.name,
        MODEL_SHA256,
        shapes,
        style_inputs,
        "fp16",
        VERSION,
        GPU.name,
        GPU.capability,
        GPU.uuid,
        "13.0",
        "0.1",
    )
    return replace(sidecar, **other)


def built(net: Net, *, half: bool = False) -> Plan:
    """Prepare a network as the builder does, and keep its plan in the user's folder."""
    prepared = prepare(net.model, net.card)
    model = to_fp16(prepared.model).model if half else prepared.model
    style = prepared.style_model.SerializeToString() if prepared.style_model else b""
    return keep(net.card, plan_of(model.SerializeToString()), style, note(net.card, prepared.frontier))


def gpu(seed: int | None = None, kernels: HostKernels | None = None) -> FakeDriver:
    """A driver; only what crops and paints needs the kernels."""
    return FakeDriver(cast(HostKernels, kernels), seed)


def trt_on(driver: FakeDriver, *faults: str, **more: Any) -> FakeTensorRt:
    """TensorRT on a driver."""
    return FakeTensorRt(lambda handle, work: driver.stream_of(handle).push("network", work), *faults, **more)


@dataclass
class Opened:
    """An engine, and everything it stands on."""

    net: Net
    plan: Plan
    driver: FakeDriver
    trt: FakeTensorRt
    engine: TensorRtEngine


def opened(net: Net | None = None, *faults: str, seed: int | None = None, half: bool = False, slots: int = 2) -> Opened:
    """Build a plan and load it."""
    net = net or swapper()
    plan, driver = built(net, half=half), gpu(seed)
    trt = trt_on(driver, *faults)
    return Opened(net, plan, driver, trt, TensorRtEngine(net.card, plan.path, driver, slots, trt=cast(Any, trt)))


def inputs(net: Net, seed: int = 0) -> list[NDArray[Any]]:
    """Numbers of the kind that each input takes."""
    rng = np.random.default_rng(seed)
    return [rng.random(spec.shape).astype(spec.dtype) for spec in net.card.inputs]


def right(net: Net, *tensors: NDArray[Any]) -> list[NDArray[Any]]:
    """What the whole network, as published, makes of them."""
    session = ort.InferenceSession(net.model.SerializeToString(), providers=["CPUExecutionProvider"])
    named = dict(zip((spec.name for spec in net.card.inputs), tensors, strict=True))
    return session.run([spec.name for spec in net.card.outputs], named)
