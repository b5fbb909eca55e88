"""The CUDA kernels built by g++: the very same sources, run on the memory of the host, one thread after the other."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engines import cuda

KERNELS = Path(cuda.__file__).parent / "kernels"
SHIM = Path(__file__).parent / "shim"
SANITIZE = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
_SIGNATURE = re.compile(r"__global__ void (\w+)\(([^)]*)\)")
_TYPES = {np.uint64: ctypes.c_void_p, np.int32: ctypes.c_int, np.float32: ctypes.c_float}


def compiler() -> str | None:
    """Where g++ is, if it is."""
    return shutil.which("g++")


def signatures(file: Path) -> dict[str, list[str]]:
    """The kernels of a file and the types of their arguments, as its preprocessed source has them."""
    source = subprocess.run(
        ["g++", "-E", "-P", "-x", "c++", "-D__global__=__global__", f"-I{SHIM}", f"-I{KERNELS}", str(file)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return {
        name: [" ".join(argument.split()[:-1]).strip() for argument in arguments.replace("*", "* ").split(",")]
        for name, arguments in _SIGNATURE.findall(source)
    }


class HostKernels:
    """Builds the kernels when they are first asked for; ``launch`` runs one to its end.

    Args:
        folder: for what is built.
        sources: where the kernels are.
        flags: more of them for g++, e.g. ``SANITIZE``.
    """

    def __init__(self, folder: Path, sources: Path = KERNELS, flags: Sequence[str] = ()) -> None:
        self._folder, self._sources, self._flags = folder, sources, tuple(flags)
        self._built: dict[str, ctypes.CDLL] = {}

    def launch(self, file: str, name: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        """Run a kernel; arguments as for ``Kernel.launch`` of ``engines.cuda.driver``, addresses being the host's."""
        call = getattr(self._library(file), f"launch_{name}")
        values = [_TYPES[type(argument)](argument.item()) for argument in arguments]
        triple = ctypes.c_uint * 3
        call(triple(*grid), triple(*block), *values)

    def _library(self, file: str) -> ctypes.CDLL:
        if file not in self._built:
            self._built[file] = ctypes.CDLL(str(self.build(file)))
        return self._built[file]

    def build(self, file: str) -> Path:
        """Build a file and return the library."""
        source, library = self._folder / f"{file}.cpp", self._folder / f"{file}.so"
        names = signatures(self._sources / file)
        barriers = "__syncthreads" in (self._sources / file).read_text(encoding="utf-8")
        source.write_text(_wrapped(self._sources / file, names, barriers=barriers), encoding="utf-8")
        subprocess.run(
            ["g++", "-std=c++17", "-O1", "-g", "-shared", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra",
             "-Wno-unknown-pragmas", "-Wno-unused-function", "-Wno-unused-variable", *self._flags, f"-I{SHIM}",
             f"-I{self._sources}", f"-I{KERNELS}", "-o", str(library), str(source)],
            check=True,
        )  # fmt: skip
        return library


def _wrapped(file: Path, names: Mapping[str, Sequence[str]], *, barriers: bool) -> str:
    lines = ["#include <shim.h>", "#undef __global__", "#define __global__", f'#include "{file}"']
    for name, types in names.items():
        typed = "".join(f", {kind} a{n}" for n, kind in enumerate(types))
        plain = ", ".join(f"a{n}" for n in range(len(types)))
        lines += [
            f'extern "C" void launch_{name}(const unsigned* grid, const unsigned* block{typed}) {{',
            f"    fibres::launch(grid, block, {str(barriers).lower()}, [&] {{ {name}({plain}); }});",
            "}",
        ]
    return "\n".join(lines) + "\n"
