from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from engines.errors import ModelError
from engines.modular.attention import Attention
from engines.modular.checkpoint import untrained
from engines.modular.fusion import FUSIONS, GatedFusion
from engines.modular.generator import AdaIN
from engines.modular.swapper import PipelineConfig
from engines.modular.train import encoder_view
from realtime.align import TEMPLATES

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SMALL = PipelineConfig(width=8, blocks=1)


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def test_the_encoder_gives_one_embedding_for_each_face() -> None:
    assert untrained(SMALL).encoder(torch.zeros(2, 3, 112, 112)).shape == (2, 512)


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("size", [128, 256])
def test_a_swap_gives_a_picture_and_a_mask_at_the_size_of_the_target(fusion: str, size: int) -> None:
    swapper = untrained(PipelineConfig(8, 1, fusion)).swapper
    picture, mask = swapper(torch.rand(2, 3, size, size) * 2 - 1, torch.nn.functional.normalize(torch.rand(2, 512)))
    assert (picture.shape, mask.shape) == ((2, 3, size, size), (2, 1, size, size))
    for part in (picture, mask):
        assert 0 <= float(part.min()) < float(part.max()) <= 1


@pytest.mark.parametrize("fusion", FUSIONS)
def test_another_identity_or_another_target_gives_another_picture(fusion: str) -> None:
    swapper = untrained(PipelineConfig(8, 1, fusion)).swapper
    one, other = torch.nn.functional.normalize(torch.eye(2, 512))
    target = torch.linspace(-1, 1, 3 * 128 * 128).reshape(1, 3, 128, 128)
    picture = swapper(target, one[None])[0]
    assert float((swapper(target, other[None])[0] - picture).abs().max()) > 1e-3
    assert float((swapper(-target, one[None])[0] - picture).abs().max()) > 1e-3


@pytest.mark.parametrize(("bias", "winner"), [(100.0, "source"), (-100.0, "target")])
def test_the_gate_decides_channel_by_channel_who_enters(bias: float, winner: str) -> None:
    fusion = GatedFusion(4, 3, 5)
    torch.nn.init.constant_(fusion.gate.bias, bias)
    sides = {"source": torch.rand(2, 4), "target": torch.rand(2, 3)}
    code = fusion(sides["source"], sides["target"])
    torch.testing.assert_close(code, getattr(fusion, winner)(sides[winner]))


def test_linear_fusion_adds_what_each_side_says() -> None:
    fusion = FUSIONS["linear"](4, 3, 5)
    source, target, nothing = torch.rand(2, 4), torch.rand(2, 3), torch.zeros(2, 3)
    torch.testing.assert_close(
        fusion(source, target) - fusion(source, nothing), fusion(0 * source, target) - fusion(0 * source, nothing)
    )


def test_the_code_alone_sets_mean_and_spread_of_a_channel() -> None:
    norm, code = AdaIN(4, 6), torch.rand(1, 6)
    x = torch.rand(1, 4, 16, 16)
    torch.testing.assert_close(norm(x, code), norm(5 * x + 3, code), atol=1e-3, rtol=1e-3)
    spread, mean = norm.style(code)[0].chunk(2)
    torch.testing.assert_close(norm(x, code).mean(dim=(2, 3))[0], mean, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(norm(x, code).std(dim=(2, 3))[0], (1 + spread).abs(), atol=1e-2, rtol=1e-2)


def test_attention_scales_and_adds_nothing() -> None:
    attention, x = Attention(8), torch.randn(2, 8, 16, 16)
    factor = attention(x) / x
    assert float(factor.min()) > 0
    assert float(factor.max()) < 1
    assert float(attention(torch.zeros(1, 8, 4, 4)).abs().max()) == 0


@pytest.mark.parametrize("size", [128, 256])
def test_the_encoder_is_shown_its_own_template(size: int) -> None:
    # Each of the five points of the swapper's template, drawn into its crop, must come out where the encoder's has it.
    swapped, wanted = TEMPLATES["arcface_128"], TEMPLATES["arcface_112_v2"]
    grid = torch.arange(size, dtype=torch.float32)
    for point, place in zip(np.asarray(swapped), np.asarray(wanted), strict=True):
        x, y = (float(value) * size for value in point)
        spot = torch.exp(-((grid[None] - x) ** 2 + (grid[:, None] - y) ** 2) / (2 * (size / 64) ** 2))
        view = encoder_view(spot.expand(1, 3, size, size))[0, 0] * 0.5 + 0.5
        weight, at = view / view.sum(), torch.arange(112, dtype=torch.float32)
        found = float((weight * at[None]).sum()), float((weight * at[:, None]).sum())
        np.testing.assert_allclose(found, np.asarray(place) * 112, atol=0.3)  # half a pixel of 256 is a quarter of 112


def test_random_weights_are_the_same_each_time_and_leave_other_random_numbers_alone() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    one, other = untrained(SMALL).state_dict(), untrained(SMALL).state_dict()
    assert torch.equal(torch.rand(3), wanted)
    assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (lambda: PipelineConfig(fusion="sum"), "no fusion 'sum'"),
        (lambda: PipelineConfig(width=0), "width 0"),
        (lambda: PipelineConfig(blocks=0), "blocks 0"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused(config: type[PipelineConfig], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        config()
