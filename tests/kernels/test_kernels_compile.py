"""Every CUDA kernel compiles for every GPU that is served, in few enough registers, and with nothing in slow memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import nvrtc
from tests.kernels.host import KERNELS, compiler, signatures

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


@pytest.mark.parametrize("file", FILES)
def test_every_kernel_of_a_file_is_looked_at(file: str) -> None:
    if compiler() is None:
        pytest.skip("g++ is not installed")
    assert set(nvrtc.compile_for("sm_86", KERNELS / file)) == set(signatures(KERNELS / file))


def test_a_mistake_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text((KERNELS / "mark.cu").read_text(encoding="utf-8").replace("fmaf(", "fmaff(", 1), encoding="utf-8")
    with pytest.raises(nvrtc.CompileError, match="fmaff"):
        nvrtc.compile_for("sm_86", wrong)


def test_a_kernel_that_takes_too_much_is_found(tmp_path: Path) -> None:
    loads = "".join(f"    float v{n} = in[{n} * stride];\n" for n in range(90))
    total = " + ".join(f"v{n} * v{(n * 7 + 3) % 90}" for n in range(90))
    body = f"(const float* in, float* out, int stride) {{\n{loads}    __syncthreads();\n    out[0] = {total};\n}}\n"
    file = tmp_path / "greedy.cu"
    file.write_text(
        f'extern "C" __global__ void greedy{body}extern "C" __global__ __launch_bounds__(1024, 2) void squeezed{body}',
        encoding="utf-8",
    )
    used = nvrtc.compile_for("sm_86", file)
    assert used["greedy"].registers > MOST_REGISTERS
    assert used["squeezed"].spilled_bytes > 0
