"""What ``doppelcam warm`` leaves to be compiled: nothing that a swap through a network meets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from realtime.doctor import KERNELS

ROOT = Path(__file__).resolve().parents[2]
COMPILED = """
def compiled():
    import importlib
    kernels = [vars(importlib.import_module(module)).items() for module in {modules}]
    return {{name: len(k.signatures) for some in kernels for name, k in some if hasattr(k, "py_func")}}
"""
PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
from engines.registry import open_device
from realtime.assets import demo_photo
from realtime.identity import Portrait
from realtime.swappers import Look
from realtime.warming import warm_up
from tests.facenets import EVERY
from tests.faces import face_of
from tests.swapstage import SwapStage

warm_up()
before = compiled()
stage = SwapStage(Path(sys.argv[1]))
pixels = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
mesh = np.random.default_rng(1).uniform(-0.5, 0.5, (468, 3)).astype(np.float32) * 100 + (160, 120, 0)
photo = Portrait("photo", pixels, mesh.astype(np.float32), 1)
for name, boost in json.loads(sys.argv[2]):
    swapper = stage.swapper(EVERY[name](1), [photo], Look(boost=boost))
    assert swapper.swap(pixels, face_of(photo.mesh), 0.0, ()), name
print(json.dumps([before, compiled()]))
"""


def test_after_warming_every_kernel_is_compiled_and_no_network_needs_another_one(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    program = COMPILED.format(modules=KERNELS) + PROGRAM
    swaps = [["inswapper", 1], ["inswapper", 2], ["dfm", 1], ["uniface", 1]]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), json.dumps(swaps)],
        cwd=ROOT,
        env={**os.environ, "DOPPELCAM_MODELS": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout.splitlines()[-1])
    assert {name for name, count in before.items() if not count and name[0] != "_"} == set()
    assert after == before
