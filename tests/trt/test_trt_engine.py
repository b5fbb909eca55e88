"""The engine on TensorRT, on a fake of it and on a GPU that does nothing before it must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines.contract import SlottedEngine
from engines.errors import DeviceError, EngineError
from engines.plan import keep
from engines.tensorrt.engine import TensorRtEngine
from engines.tensorrt.held import PLACES
from engines.tensorrt.style import Style
from tests.cards import Net
from tests.cuda.fake_parts import FakeEvent, FakeGraph, FakeMemory, FakeStream, OrderError
from tests.halfnets import norm_net
from tests.trt.plans import Opened, built, gpu, inputs, opened, right, swapper, trt_on

pytestmark = pytest.mark.trt_api


class Seat:
    """Memory of one slot, as a lane of the device gives it, and pinned memory to look into it."""

    def __init__(self, on: Opened, slot: int, stream: FakeStream) -> None:
        self.on, self.slot, self.stream = on, slot, stream
        self.specs = (on.net.card.inputs[0], *on.net.card.outputs)
        sizes = [int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize for spec in self.specs]
        self.memory: list[FakeMemory] = [on.driver.buffer(size, "seat") for size in sizes]
        on.engine.bind(slot, {spec.name: m.address for spec, m in zip(self.specs, self.memory, strict=True)})

    def start(self, target: NDArray[Any], source: NDArray[Any]) -> Callable[[], NDArray[Any]]:
        """Enqueue a run; what is returned waits for it and gives the result."""
        sent, back = (self.on.driver.pinned(m.nbytes, "seat") for m in self.memory)
        sent.array[:] = target.reshape(-1).view(np.uint8)
        self.on.engine.hold(self.slot, "source", source, self.stream.handle)
        self.on.driver.copy_in(self.memory[0].address, sent.array, self.stream)
        self.on.engine.enqueue(self.slot, self.stream.handle)
        self.on.driver.copy_out(back.array, self.memory[1].address, self.stream)
        done = self.on.driver.event()
        self.stream.record(done)

        def result() -> NDArray[Any]:
            done.wait()
            return back.array.view(np.float32).reshape(self.specs[1].shape)

        return result


def copies(stream: FakeStream) -> int:
    return [work.name for work in stream.given].count("copy in")


def test_a_run_for_the_host_gives_what_the_whole_network_gives() -> None:
    on = opened()
    assert on.plan.sidecar.style_inputs
    engine: SlottedEngine = on.engine  # the checker holds it to the contract
    assert isinstance(engine, SlottedEngine)
    assert engine.runtime == "tensorrt 11.4.0, fp16, Fake GPU"
    first = on.engine.run(*inputs(on.net))
    for seed in range(3):
        given = inputs(on.net, seed)
        made = on.engine.run(*given)
        assert made[0] is first[0]
        np.testing.assert_allclose(made[0], right(on.net, *given)[0], atol=1e-5)


def test_a_plan_in_half_precision_takes_and_gives_what_the_card_says() -> None:
    on = opened(half=True)
    given = inputs(on.net)
    (made,) = on.engine.run(*given)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, right(on.net, *given)[0], atol=0.02)


def test_a_network_of_one_input_holds_nothing() -> None:
    spec = replace(
        swapper().card.inputs[0], name="x", shape=(1, 4, 16, 16), colour="none", layout="other", mean=(), scale=()
    )
    net = Net(
        replace(swapper().card, name="norm", inputs=(spec,), outputs=(replace(spec, name="y"),), decode={}),
        norm_net("pow"),
    )
    on = opened(net)
    np.testing.assert_allclose(on.engine.run(*inputs(net))[0], right(net, *inputs(net))[0], atol=1e-5)
    with pytest.raises(EngineError, match="holds no input 'x'"):
        on.engine.hold(0, "x", inputs(net)[0], 1000)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_two_frames_in_flight_and_two_people_in_turn(seed: int | None) -> None:
    on = opened(seed=seed)
    streams = [on.driver.stream("swap"), on.driver.stream("detect")]
    seats = [Seat(on, slot, streams[slot]) for slot in range(2)]
    people = [inputs(on.net, 10 + n)[1] for n in range(3)]
    waiting: Waiting = []
    for number in range(8):
        target = inputs(on.net, number)[0]
        who = people[(number * 2) % 3]
        waiting.append((seats[number % 2].start(target, who), right(on.net, target, who)[0]))
    for result, expected in waiting:
        np.testing.assert_allclose(result(), expected, atol=1e-5)


def counting(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What style inputs are worked out of, from now on."""
    worked_out: list[Any] = []
    compute = Style.__call__

    def counted(style: Style, given: Any) -> Any:
        worked_out.append(given)
        return compute(style, given)

    monkeypatch.setattr(Style, "__call__", counted)
    return worked_out


def test_what_is_held_is_copied_only_when_it_changes_and_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened()
    stream = on.driver.stream("swap")
    target, one = inputs(on.net)
    two = inputs(on.net, 1)[1]
    seat = Seat(on, 0, stream)
    on.driver.sealed = True
    stream.given.clear()
    worked_out = counting(monkeypatch)
    for who, copied, made in ((one, 1, 1), (one.copy(), 1, 1), (two, 2, 2), (one, 3, 2), (two, 4, 2)):
        on.engine.hold(0, "source", who, stream.handle)
        assert (copies(stream), len(worked_out)) == (copied, made)
    changed = one.copy()
    on.engine.hold(0, "source", changed, stream.handle)
    changed[:] = 7  # the caller's own again
    on.driver.sealed = False
    np.testing.assert_allclose(seat.start(target, one)(), right(on.net, target, one)[0], atol=1e-5)


def test_of_too_many_people_the_one_unseen_for_longest_is_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened()
    stream, worked_out = on.driver.stream("swap"), counting(monkeypatch)
    first, second, *others, newcomer = (inputs(on.net, number)[1] for number in range(PLACES + 1))
    for who in (first, second, *others, first, newcomer):
        on.engine.hold(0, "source", who, stream.handle)
    assert len(worked_out) == PLACES + 1
    on.engine.hold(0, "source", first, stream.handle)
    assert len(worked_out) == PLACES + 1
    on.engine.hold(0, "source", second, stream.handle)
    assert len(worked_out) == PLACES + 2


Waiting = list[tuple[Callable[[], NDArray[Any]], NDArray[Any]]]


def crowd(on: Opened, stream: FakeStream) -> Waiting:
    """Start more people than there are places, and wait for nothing."""
    seat = Seat(on, 0, stream)
    people = [inputs(on.net, number) for number in range(PLACES + 3)]
    return [(seat.start(*person), right(on.net, *person)[0]) for person in people]


def test_memory_that_a_copy_still_reads_is_not_written_to() -> None:
    on = opened()
    for result, expected in crowd(on, on.driver.stream("swap")):
        np.testing.assert_allclose(result(), expected, atol=1e-5)


def test_without_that_wait_the_driver_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened()
    stream = on.driver.stream("swap")
    monkeypatch.setattr(FakeEvent, "wait", lambda _: None)
    with pytest.raises(OrderError, match="writing what is copied in by the host is in no order"):
        crowd(on, stream)


def test_an_identity_that_could_not_be_worked_out_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened()
    stream = on.driver.stream("swap")
    seat = Seat(on, 0, stream)
    target, one = inputs(on.net)
    two = inputs(on.net, 1)[1]
    seat.start(target, one)()

    def fails(*_: Any) -> Any:
        raise EngineError("no", "try again")

    with monkeypatch.context() as patched:
        patched.setattr(Style, "__call__", fails)
        with pytest.raises(EngineError, match="no"):
            seat.start(target, two)
    np.testing.assert_allclose(seat.start(target, two)(), right(on.net, target, two)[0], atol=1e-5)


def test_a_run_can_be_captured() -> None:
    on = opened()
    stream = on.driver.stream("swap")
    seat = Seat(on, 0, stream)
    target, source = inputs(on.net)
    seat.start(target, source)()
    with on.driver.capture(stream) as graphs:
        on.engine.enqueue(0, stream.handle)
    (graph,) = graphs
    assert isinstance(graph, FakeGraph)
    assert [work.name for work in graph.works] == ["network"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("plugins", "does not load its plugins .* Error Code 3: API Usage Error .plugins failed"),
        ("runtime", "does not start .*runtime failed"),
        ("deserialize", "refuses the plan .*deserialize failed"),
        ("context", "makes no context .*context failed"),
        ("dtype", "the card says 'target' is float32"),
        ("shape", "does not take 'target' as .*shape failed"),
        ("inference", "cannot work out shapes .*inference failed"),
        ("unknown shape", "does not know the shapes of unknown .*gave no reason"),
        ("other shape", r"gives 'output' as \(1, 1\), its card says"),
    ],
)
def test_what_fails_when_it_is_opened_is_one_clear_error(fault: str, says: str) -> None:
    net = swapper()
    plan, driver = built(net), gpu()
    trt = trt_on(driver, fault)
    with pytest.raises(EngineError, match=says) as caught:
        TensorRtEngine(net.card, plan.path, driver, trt=cast(Any, trt))
    assert "about to do" not in caught.value.message  # only what went wrong
    assert caught.value.hint
    del caught
    assert driver.allocations() == ()


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("address of target", "does not take the address 0x.* of 'target' .*address of target failed"),
        ("run", "does not start a run .*run failed"),
    ],
)
def test_what_fails_later_is_one_clear_error_and_spoils_nothing(fault: str, says: str) -> None:
    on = opened(None, fault)
    before = on.driver.allocations()
    with pytest.raises(EngineError, match=says) as caught:
        on.engine.run(*inputs(on.net))
    assert caught.value.hint
    del caught
    if fault != "run":
        assert on.driver.allocations() == before
    on.trt.faults.clear()
    np.testing.assert_allclose(on.engine.run(*inputs(on.net))[0], right(on.net, *inputs(on.net))[0], atol=1e-5)


def test_a_held_input_without_an_address_is_an_error() -> None:
    on = opened()
    name = on.plan.sidecar.style_inputs[0]
    on.trt.faults.add(f"address of {name}")
    with pytest.raises(EngineError, match=f"of '{name}'"):
        Seat(on, 0, on.driver.stream("swap"))


def test_a_gpu_that_fails_is_an_error_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened()

    def fails(_: FakeEvent) -> None:
        raise DeviceError("an illegal address was accessed", "start again")

    monkeypatch.setattr(FakeEvent, "wait", fails)
    with pytest.raises(EngineError, match="failed on the GPU: an illegal address"):
        on.engine.run(*inputs(on.net))


def test_what_is_not_ready_does_not_run() -> None:
    on = opened()
    stream = on.driver.stream("swap")
    with pytest.raises(EngineError, match="slot 0 lacks the addresses"):
        on.engine.enqueue(0, stream.handle)
    Seat(on, 0, stream)
    with pytest.raises(EngineError, match="slot 0 lacks source"):
        on.engine.enqueue(0, stream.handle)
    assert on.trt.runs == 0


def test_wrong_calls_are_refused() -> None:
    on = opened()
    with pytest.raises(EngineError, match="bound by output, target, got target"):
        on.engine.bind(0, {"target": 4096})
    with pytest.raises(EngineError, match="must be a C-contiguous float32"):
        on.engine.hold(0, "source", np.zeros((1, 512), np.float64), 1000)
    with pytest.raises(EngineError, match="holds no input 'target'"):
        on.engine.hold(0, "target", inputs(on.net)[0], 1000)
    with pytest.raises(EngineError, match="takes 2 inputs, got 1"):
        on.engine.run(inputs(on.net)[0])


def test_contexts_go_first_then_the_plan_then_tensorrt() -> None:
    on = opened()
    on.engine.run(*inputs(on.net))
    on.engine.close()
    on.engine.close()
    assert on.trt.ended == ["context"] * 3 + ["engine", "runtime"]
    assert on.driver.allocations() == ()
    with pytest.raises(EngineError, match="is closed"):
        on.engine.run(*inputs(on.net))
    with pytest.raises(EngineError, match="is closed"):
        on.engine.enqueue(0, 1000)


@pytest.mark.parametrize("captured", [False, True])
def test_what_it_was_given_ends_before_it_is_closed(captured: bool) -> None:
    on = opened()
    stream = on.driver.stream("swap")
    seat = Seat(on, 0, stream)
    target, source = inputs(on.net)
    result = seat.start(target, source)
    if captured:
        result()
        with on.driver.capture(stream) as graphs:
            on.engine.enqueue(0, stream.handle)
        graphs[0].launch(stream)
    done = on.driver.event()
    stream.record(done)
    on.engine.close()
    done.wait()
    np.testing.assert_allclose(result(), right(on.net, target, source)[0], atol=1e-5)
    assert on.trt.ended == ["context"] * 2 + ["engine", "runtime"]


def test_a_run_for_the_host_that_cannot_be_set_up_keeps_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    on = opened()
    before = on.driver.allocations()

    def refuse(*_: Any) -> None:
        raise DeviceError("the GPU failed at making a stream", "try again")

    monkeypatch.setattr(on.driver, "stream", refuse)
    with pytest.raises(DeviceError, match="making a stream") as caught:
        on.engine.run(*inputs(on.net))
    del caught
    assert on.driver.allocations() == before


def test_everything_for_frames_is_allocated_when_it_is_opened() -> None:
    on = opened()
    scratch = [line for line in on.driver.allocations() if "scratch" in line[1]]
    assert len(scratch) == 2
    assert all(where == "device" and nbytes == on.trt.scratch_bytes for where, _, nbytes in scratch)


def test_a_plan_of_another_network_is_refused() -> None:
    net, other = swapper(), swapper(64)
    plan = built(net)
    with pytest.raises(EngineError, match=r"the card says 'target' is float32 \(1, 3, 64, 64\)"):
        TensorRtEngine(other.card, plan.path, gpu(), trt=cast(Any, trt_on(gpu())))


def test_a_note_that_knows_other_inputs_is_refused() -> None:
    net = swapper()
    plan = built(net)
    other = replace(plan.sidecar, style_inputs=(*plan.sidecar.style_inputs[1:], "another"))
    keep(net.card, plan.read(), plan.read_style(), other)
    with pytest.raises(EngineError, match="its card and its note say"):
        TensorRtEngine(net.card, plan.path, gpu(), trt=cast(Any, trt_on(gpu())))
