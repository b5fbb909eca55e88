"""Kernels and graphs on streams of any back end, by way of CuPy; knows no memory and no picture.

CuPy compiles the kernels for the GPU that is there and keeps what it has compiled, so only the first start takes time.
It has no part in memory: its pool hands blocks out per stream, and everything here is used on several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engines.cuda.driver import Graph, Kernel, Stream
from engines.cuda.words import failure
from engines.errors import DeviceError, install_extra

KERNELS = Path(__file__).parent / "kernels"
COMPILER = (
    "update the NVIDIA driver, or get CUDA's compiler and headers: pip install 'cupy-cuda13x[ctk]' (with the pip of "
    "the environment that runs this)"
)
OPTIONS = ("-std=c++17", f"-I{KERNELS}")


class _Handle:
    """A stream as other libraries take it, by the protocol ``__cuda_stream__`` (version, handle)."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class Toolkit:
    """What CuPy does for a driver. The primary context must be current when it is used.

    Attributes:
        errors: of CUDA's two interfaces, which tell of work that failed earlier too.
    """

    def __init__(self) -> None:
        try:
            import cupy  # noqa: PLC0415  (needs a GPU for nearly everything, and a second to load)
        except ImportError as error:
            raise DeviceError(f"cupy does not load: {error}", install_extra("gpu")) from error
        self._cupy = cupy
        self.errors = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
        self._modules: dict[str, Any] = {}
        self._kernels: dict[tuple[str, str], CupyKernel] = {}
        self._streams: dict[int, Any] = {}

    def stream(self, stream: Stream) -> Any:
        """CuPy's own object for a stream; made once."""
        if stream.handle not in self._streams:
            self._streams[stream.handle] = self._cupy.cuda.Stream.from_external(_Handle(stream.handle))
        return self._streams[stream.handle]

    def kernel(self, file: str, name: str) -> Kernel:
        """See :meth:`engines.cuda.driver.Driver.kernel`."""
        if (file, name) not in self._kernels:
            try:
                if file not in self._modules:
                    source = (KERNELS / file).read_text(encoding="utf-8")
                    self._modules[file] = self._cupy.RawModule(code=source, options=OPTIONS)
                function = self._modules[file].get_function(name)
            except self._cupy.cuda.compiler.CompileException as error:
                raise DeviceError(f"{name} of {file} does not compile: {error}", "report this as a bug") from error
            except (RuntimeError, OSError, ImportError) as error:  # of CUDA, the driver or the compiler, or not found
                raise DeviceError(f"CuPy cannot compile {file}: {error}", COMPILER) from error
            self._kernels[file, name] = CupyKernel(self, name, function)
        return self._kernels[file, name]

    @contextmanager
    def capture(self, stream: Stream) -> Iterator[list[Graph]]:
        """See :meth:`engines.cuda.driver.Driver.capture`."""
        runtime, own, graphs = self._cupy.cuda.runtime, self.stream(stream), list[Graph]()
        try:
            own.begin_capture(runtime.streamCaptureModeThreadLocal)
            try:
                yield graphs
            except BaseException:
                self._abandon(own)
                raise
            graphs.append(CupyGraph(self, own.end_capture()))
        except runtime.CUDARuntimeError as error:
            raise DeviceError(f"the work cannot be captured: {error}", "update the NVIDIA driver") from error

    def _abandon(self, own: Any) -> None:
        """End a capture whose work is not wanted; the error that ended it is the one that is told."""
        try:
            own.end_capture()
        except self._cupy.cuda.runtime.CUDARuntimeError:
            return


class CupyKernel:
    """See :class:`engines.cuda.driver.Kernel`."""

    def __init__(self, toolkit: Toolkit, name: str, function: Any) -> None:
        self._toolkit, self._name, self._function = toolkit, name, function

    def launch(
        self, stream: Stream, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: Sequence[Any]
    ) -> None:
        """Enqueue one run."""
        try:
            with self._toolkit.stream(stream):
                self._function(grid, block, tuple(arguments))
        except self._toolkit.errors as error:
            raise failure(f"the kernel {self._name}", str(error)) from error


class CupyGraph:
    """See :class:`engines.cuda.driver.Graph`."""

    def __init__(self, toolkit: Toolkit, graph: Any) -> None:
        self._toolkit, self._graph = toolkit, graph

    def launch(self, stream: Stream) -> None:
        """Enqueue all of it."""
        try:
            self._graph.launch(self._toolkit.stream(stream))
        except self._toolkit.errors as error:
            raise failure("a graph", str(error)) from error
