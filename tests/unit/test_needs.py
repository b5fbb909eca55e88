from __future__ import annotations

from pathlib import Path

import pytest

from engines.errors import ModelError
from realtime.app.needs import demand_models, needed_models
from realtime.config import Settings, default_layer, from_set_options, resolve


def made(*options: str) -> Settings:
    return resolve([default_layer(), from_set_options(options)])


def test_the_mesh_swapper_needs_nothing() -> None:
    assert needed_models(made()) == ()
    assert needed_models(made("masks.occlusion=xseg_1")) == ()  # which it has no use for
    demand_models(made())


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("swap.engine=inswapper_128",), ("inswapper_128", "w600k_r50")),
        (("swap.engine=ghost_1_256",), ("ghost_1_256", "w600k_r50", "crossface_ghost")),
        (("swap.engine=uniface_256", "masks.regions=bisenet_resnet_18"), ("uniface_256", "bisenet_resnet_18")),
        (("enhance.model=gfpgan_1.4", "faces.only=['a.png']"), ("gfpgan_1.4", "w600k_r50")),
        (("swap.engine=inswapper_128", "faces.map=['a.png=b.png']"), ("inswapper_128", "w600k_r50")),
    ],
)
def test_what_a_model_needs_in_turn_is_listed_once(options: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert needed_models(made(*options)) == names


def test_all_that_is_missing_is_told_at_once_with_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    (tmp_path / "w600k_r50.onnx").write_bytes(b"here, whatever it is")
    with pytest.raises(ModelError, match=r"not here: ghost_1_256 \(ghost_1_256.onnx\), crossface_ghost") as caught:
        demand_models(made("swap.engine=ghost_1_256"))
    assert caught.value.hint.startswith("doppelcam models pull ghost_1_256 crossface_ghost; ")


def test_a_swapper_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ModelError, match="no model card 'nobody'"):
        demand_models(made("swap.engine=nobody"))
