"""What Python packs for the kernels lies where they read it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engines.cuda import blocks
from tests.kernels.host import KERNELS, compiler

pytestmark = pytest.mark.kernels_host


def test_the_blocks_are_laid_out_as_the_kernels_declare_them(tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("g++ is not installed")
    names = {"CropBlock": blocks.CROP, "PasteBlock": blocks.PASTE, "MeshBlock": blocks.MESH, "MarkBlock": blocks.MARK}
    lines = [f'printf("{kind} %zu\\n", sizeof({kind}));' for kind in (*names, "Measured")]
    for kind, dtype in names.items():
        lines += [f'printf("{kind}.{field} %zu\\n", offsetof({kind}, {field}));' for field in dtype.names or ()]
    declared = {"before": "before_mean", "after": "after_mean", "low": "low", "high": "high", "painted": "painted"}
    for field, name in declared.items():
        lines.append(f'printf("Measured.{field} %zu\\n", offsetof(Measured, {name}));')
    source, program = tmp_path / "layout.cpp", tmp_path / "layout"
    text = "\n".join(["#include <stddef.h>", "#include <stdio.h>", '#include "params.h"', "int main() {", *lines, "}"])
    source.write_text(text, encoding="utf-8")
    subprocess.run(["g++", f"-I{KERNELS}", "-o", str(program), str(source)], check=True)
    said = dict(line.split() for line in subprocess.check_output([str(program)], text=True).splitlines())
    for kind, dtype in {**names, "Measured": blocks.MEASURED}.items():
        assert int(said[kind]) == dtype.itemsize, kind
        for field, (_, offset, *_) in (dtype.fields or {}).items():
            if field != "spare":
                assert int(said[f"{kind}.{field}"]) == offset, (kind, field)
