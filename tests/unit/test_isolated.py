"""A program that is asked in a process of its own answers, or its end is told in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines import gpu_trial, isolated
from engines.errors import EngineError
from engines.isolated import module


def test_a_program_of_ours_answers_wherever_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('imported from where it was started')")
    monkeypatch.chdir(tmp_path)
    answer = isolated.ask("the GPU", module("engines.gpu_trial", "device"), "see", 60)
    assert answer.keys() in ({"error", "hint"}, gpu_trial_keys())


def gpu_trial_keys() -> set[str]:
    return {"name", "cuda", "memory_bytes", "free_bytes", "allocations", "remarks"}


def test_one_that_does_not_exist_is_told_with_its_last_words() -> None:
    with pytest.raises(
        EngineError, match=r"the GPU takes its process down .*No module named engines\.nothing"
    ) as caught:
        isolated.ask("the GPU", module("engines.nothing"), "update the driver", 60)
    assert caught.value.hint == "update the driver"


def test_the_smallest_network_is_one() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is in the extra dev")
    model = onnx.load_model_from_string(gpu_trial.NETWORK)
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["Relu"]
    assert gpu_trial.try_onnx_runtime("CPUExecutionProvider") == {"really": "CPUExecutionProvider", "why": ""}
