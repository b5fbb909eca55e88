"""Every CUDA kernel compiles for every GPU that is served, in few enough registers, and with nothing in slow memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import nvrtc
from tests.kernels.host import KERNELS

pytestmark = pytest.mark.kernels_compile
FILES = sorted(file.name for file in KERNELS.glob("*.cu"))
MOST_REGISTERS = 64
"""Four blocks of 256 threads fit into the 65,536 registers of a multiprocessor then."""


@pytest.fixture(autouse=True)
def _nvrtc() -> None:
    if absent := nvrtc.missing():
        pytest.skip(f"not installed: {absent}")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("gpu", nvrtc.GPUS)
def test_it_compiles_small_and_spills_nothing(gpu: str, file: str) -> None:
    used = nvrtc.compile_for(gpu, KERNELS / file)
    assert used
    for name, use in used.items():
        assert use.registers <= MOST_REGISTERS, name
        assert (use.spilled_bytes, use.stack_bytes) == (0, 0), name


def test_every_kernel_of_a_file_is_looked_at() -> None:
    assert set(nvrtc.compile_for("sm_86", KERNELS / "paste.cu")) == {"paste_f32", "paste_f16"}
    assert set(nvrtc.compile_for("sm_86", KERNELS / "mesh.cu")) == {
        "mesh_begin", "mesh_rasterise", "mesh_planes", "mesh_paint",
    }  # fmt: skip


def test_a_mistake_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text((KERNELS / "mark.cu").read_text(encoding="utf-8").replace("fmaf(", "fmaff(", 1), encoding="utf-8")
    with pytest.raises(nvrtc.CompileError, match="fmaff"):
        nvrtc.compile_for("sm_86", wrong)


def test_a_kernel_that_spills_is_found(tmp_path: Path) -> None:
    greedy = tmp_path / "greedy.cu"
    sums = "".join(f"    float v{n} = in[{n} * stride];\n" for n in range(90))
    total = " + ".join(f"v{n} * v{(n * 7 + 3) % 90}" for n in range(90))
    greedy.write_text(
        'extern "C" __global__ __launch_bounds__(1024, 2) void greedy(const float* in, float* out, int stride) {\n'
        f"{sums}    __syncthreads();\n    out[0] = {total};\n    __syncthreads();\n    out[1] = {total} - v3;\n}}\n",
        encoding="utf-8",
    )
    assert nvrtc.compile_for("sm_86", greedy)["greedy"].spilled_bytes > 0
