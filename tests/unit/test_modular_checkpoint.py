from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from engines.errors import ModelError
from engines.modular.checkpoint import restore, untrained
from engines.modular.swapper import PipelineConfig

SMALL = PipelineConfig(width=8, blocks=1)
Weights = dict[str, Any]


def saved(path: Path, content: object) -> Path:
    torch.save(content, path)
    return path


def test_what_was_saved_is_restored(tmp_path: Path) -> None:
    weights = {key: value + 1 for key, value in untrained(SMALL).state_dict().items()}
    restored = restore(SMALL, saved(tmp_path / "good.pt", weights))
    assert not restored.training
    for key, value in restored.state_dict().items():
        torch.testing.assert_close(value, weights[key])


def test_half_precision_becomes_float32(tmp_path: Path) -> None:
    halves = {key: value.half() for key, value in untrained(SMALL).state_dict().items()}
    restored = restore(SMALL, saved(tmp_path / "half.pt", halves))
    assert {parameter.dtype for parameter in restored.parameters()} == {torch.float32}


def without_bias(weights: Weights) -> object:
    return {key: value for key, value in weights.items() if key != "encoder.embed.bias"}


def with_more(weights: Weights) -> object:
    return {**weights, "teacher.weight": torch.zeros(1)}


def not_finite(weights: Weights) -> object:
    return {**weights, "encoder.embed.bias": torch.full((512,), torch.nan)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_bias, "lacks encoder.embed.bias"),
        (with_more, "has the unknown teacher.weight"),
        (lambda _: untrained(PipelineConfig(width=16, blocks=1)).state_dict(), "has another shape of .* and \\d+ more"),
        (lambda _: untrained(PipelineConfig(8, 2)).state_dict(), "has the unknown swapper.generator.bottleneck.1"),
        (lambda _: untrained(PipelineConfig(8, 1, "gated")).state_dict(), "fusion.gate"),
        (not_finite, "encoder.embed.bias holds values that are no numbers"),
        (lambda weights: list(weights.values()), "no table of tensors"),
        (lambda _: {"epoch": 3}, "no table of tensors"),
        (lambda weights: dict(enumerate(weights.values())), "no table of tensors"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_by_name(
    change: Callable[[Weights], object], said: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "wrong.pt", change(untrained(SMALL).state_dict()))
    with pytest.raises(ModelError, match=said) as caught:
        restore(SMALL, path)
    assert str(path) in caught.value.message


class Trap:
    """Would make a file if it were ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


def test_what_a_checkpoint_holds_is_never_run(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    with pytest.raises(ModelError, match="could be code"):
        restore(SMALL, saved(tmp_path / "trap.pt", {"weight": Trap(sprung)}))
    (tmp_path / "bare.pt").write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ModelError, match="no checkpoint"):
        restore(SMALL, tmp_path / "bare.pt")
    assert not sprung.exists()
    torch.load(tmp_path / "trap.pt", weights_only=False)
    assert sprung.exists()  # the trap is one


def test_a_damaged_file_is_told_from_a_missing_one(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.pt", untrained(SMALL).state_dict()).read_bytes()
    torn = bytearray(whole)
    torn[: len(torn) // 2] = bytes(len(torn) // 2)  # its end still says that it is an archive
    damaged = {"cut.pt": whole[: len(whole) // 2], "torn.pt": bytes(torn), "empty.pt": b"", "text.pt": b"no weights\n"}
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match="damaged"):
            restore(SMALL, tmp_path / name)
    for missing in (tmp_path / "none.pt", tmp_path):
        with pytest.raises(ModelError, match="cannot be read"):
            restore(SMALL, missing)
