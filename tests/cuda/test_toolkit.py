"""What is asked of CuPy: that the real one has it, and that the toolkit asks for it in the right order.

CuPy itself runs on a real GPU only. What its calls do there is for ``tests/hardware``.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engines.cuda.toolkit import KERNELS, OPTIONS, Toolkit
from engines.errors import DeviceError, EngineError

pytestmark = pytest.mark.ordering
THREAD_LOCAL = 1
STREAM: Any = SimpleNamespace(name="swap", handle=0xABC)


class RefusedError(RuntimeError):
    """As CUDA's runtime says no."""


class ToolError(RuntimeError):
    """As the driver says no."""


class Recording:
    """A CuPy that writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.refuses: set[str] = set()
        runtime = SimpleNamespace(streamCaptureModeThreadLocal=THREAD_LOCAL, CUDARuntimeError=RefusedError)
        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=ToolError),
            compiler=SimpleNamespace(CompileException=SyntaxError),
            Stream=SimpleNamespace(from_external=self.from_external),
        )

    def ask(self, *what: Any) -> None:
        self.asked.append(what)
        if what[0] in self.refuses:
            kind = SyntaxError if what[0] == "get_function" else ToolError if what[0] == "run" else RefusedError
            raise kind("an illegal memory access was encountered")

    def from_external(self, given: Any) -> RecordingStream:
        version, handle = given.__cuda_stream__()
        self.ask("stream", version, handle)
        return RecordingStream(self)

    def RawModule(self, **given: Any) -> Any:
        self.ask("module", given["options"])
        return SimpleNamespace(get_function=self.get_function)

    def get_function(self, name: str) -> Any:
        self.ask("get_function", name)
        return lambda *launch: self.ask("run", name, *launch)


class RecordingStream:
    def __init__(self, cupy: Recording) -> None:
        self.cupy = cupy

    def __enter__(self) -> None:
        self.cupy.ask("enter")

    def __exit__(self, *_: object) -> None:
        self.cupy.ask("leave")

    def begin_capture(self, mode: int) -> None:
        self.cupy.ask("begin", mode)

    def end_capture(self) -> Any:
        self.cupy.ask("end")
        return SimpleNamespace(launch=lambda stream: self.cupy.ask("launch", stream is self))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Recording:
    recording = Recording()
    monkeypatch.setitem(sys.modules, "cupy", recording)
    return recording


def test_a_kernel_is_launched_on_the_stream_that_was_named(cupy: Recording) -> None:
    toolkit = Toolkit()
    arguments = [np.uint64(4096), np.int32(3)]
    for _ in range(2):  # a stream, a module and a function are made once
        toolkit.kernel("paste.cu", "paste_f16").launch(STREAM, (1, 2, 3), (256, 1, 1), arguments)
    launch = [("enter",), ("run", "paste_f16", (1, 2, 3), (256, 1, 1), tuple(arguments)), ("leave",)]
    made = [("module", OPTIONS), ("get_function", "paste_f16"), ("stream", 0, STREAM.handle)]
    assert cupy.asked == made + launch * 2
    toolkit.kernel("paste.cu", "paste_f32")
    assert cupy.asked[9:] == [("get_function", "paste_f32")]


def test_capturing_is_of_the_calling_thread_only(cupy: Recording) -> None:
    with Toolkit().capture(STREAM) as graphs:
        assert cupy.asked[-1] == ("begin", THREAD_LOCAL)
        assert graphs == []
    assert cupy.asked[-1] == ("end",)
    graphs[0].launch(STREAM)
    assert cupy.asked[-1] == ("launch", True)


@pytest.mark.parametrize("refuses", [set(), {"end"}], ids=["", "and so does ending"])
def test_an_error_within_a_capture_ends_it_and_goes_on(cupy: Recording, refuses: set[str]) -> None:
    cupy.refuses = refuses
    with pytest.raises(EngineError, match="the network"), Toolkit().capture(STREAM) as graphs:
        raise EngineError("the network cannot be captured", "do without")
    assert cupy.asked[-1] == ("end",)
    assert graphs == []


@pytest.mark.parametrize("what", ["begin", "end"])
def test_a_capture_that_cuda_refuses_is_told_in_words(cupy: Recording, what: str) -> None:
    cupy.refuses = {what}
    with pytest.raises(DeviceError, match="cannot be captured") as told, Toolkit().capture(STREAM):
        pass
    assert told.value.hint


def test_work_that_failed_is_told_in_words_wherever_it_is_heard_of(cupy: Recording) -> None:
    toolkit = Toolkit()
    kernel = toolkit.kernel("crop.cu", "crop_f16")
    with toolkit.capture(STREAM) as graphs:
        pass
    cupy.refuses = {"run", "launch"}
    with pytest.raises(DeviceError, match="the kernel crop_f16: an illegal memory access") as told:
        kernel.launch(STREAM, (1, 1, 1), (1, 1, 1), ())
    assert "start the program again" in told.value.hint
    with pytest.raises(DeviceError, match="a graph: an illegal memory access"):
        graphs[0].launch(STREAM)


def test_a_kernel_that_does_not_compile_is_told_with_the_compilers_words(cupy: Recording) -> None:
    cupy.refuses = {"get_function"}
    with pytest.raises(DeviceError, match=r"crop_f16 of crop\.cu does not compile: an illegal"):
        Toolkit().kernel("crop.cu", "crop_f16")


def test_without_cupy_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match="cupy does not load") as told:
        Toolkit()
    assert "[gpu]" in told.value.hint


def test_the_real_cupy_has_all_that_is_asked_of_it() -> None:
    cupy = pytest.importorskip("cupy", reason="cupy is in the extra gpu")
    stream, runtime = cupy.cuda.Stream.from_external(Foreign()), cupy.cuda.runtime
    assert stream.ptr == Foreign.handle
    assert runtime.streamCaptureModeThreadLocal == THREAD_LOCAL
    for error in (*Toolkit().errors, cupy.cuda.compiler.CompileException):
        assert issubclass(error, Exception)
    source = (KERNELS / "paste.cu").read_text(encoding="utf-8")
    assert callable(cupy.RawModule(code=source, options=OPTIONS).get_function)
    for name in ("__enter__", "__exit__", "begin_capture", "end_capture"):
        assert callable(getattr(stream, name))
    assert callable(cupy.cuda.Graph.launch)
    assert "stream=None" in cupy.cuda.Graph.launch.__doc__
    assert "begin_capture(self, mode=None)" in stream.begin_capture.__doc__


class Foreign:
    """A stream of another library."""

    handle = 4711

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle
