"""Compiles CUDA kernels for every GPU without having one, by NVRTC, and reads what the compiler says of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.kernels.host import KERNELS

GPUS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""Turing to Blackwell: what CUDA 13 knows of what people have."""
_USED = re.compile(
    r"Compiling entry function '(\w+)' for.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers",
    re.DOTALL,
)


class CompileError(Exception):
    """The compiler refused; its words."""


@dataclass(frozen=True)
class Use:
    """What a kernel takes of a multiprocessor."""

    registers: int
    spilled_bytes: int
    stack_bytes: int


def missing() -> str:
    """Which packages are missing; empty where none."""
    wanted = {"cuda.bindings": "cuda-bindings", "nvidia.cu13": "nvidia-cuda-nvrtc and nvidia-cuda-runtime"}
    absent = []
    for module, package in wanted.items():
        try:
            found = find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            absent.append(package)
    return ", ".join(absent)


def compile_for(gpu: str, file: Path) -> dict[str, Use]:
    """Compile a file as CuPy does, and say what each kernel uses."""
    import nvidia.cu13
    from cuda.bindings import nvrtc

    headers = Path(next(iter(nvidia.cu13.__path__))) / "include"
    _, program = nvrtc.nvrtcCreateProgram(file.read_bytes(), file.name.encode(), 0, [], [])
    options = [f"-arch={gpu}", "-ftz=true", "-default-device", "-std=c++17", f"-I{KERNELS}", f"-I{headers}",
               "-Xptxas=-v"]  # fmt: skip
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    words = log.decode(errors="replace").strip("\0 \n")
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(words)
    return {
        name: Use(int(registers), int(stores) + int(loads), int(stack))
        for name, stack, stores, loads, registers in _USED.findall(words)
    }
