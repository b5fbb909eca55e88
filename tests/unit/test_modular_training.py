from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from engines.modular.checkpoint import untrained
from engines.modular.fusion import FUSIONS
from engines.modular.swapper import Pipeline, PipelineConfig
from engines.modular.train import Batch, losses, step

pytestmark = pytest.mark.usefixtures("one_torch_thread")

STEPS = 6
LEAST_GRADIENT = 1e-6  # a bias before a normalisation, which nothing can learn, has 1e-8 of rounding; others 1e-4


@pytest.fixture
def batch() -> Batch:
    """Six people as smooth patterns of their own; the first three are swapped onto themselves."""
    numbers = torch.Generator().manual_seed(3)

    def pictures(size: int) -> Any:
        coarse = torch.rand(6, 3, 4, 4, generator=numbers) * 2 - 1
        return torch.nn.functional.interpolate(coarse, (size, size), mode="bilinear")

    return Batch(pictures(112), pictures(64), torch.tensor([True] * 3 + [False] * 3))


def pipeline(fusion: str) -> Pipeline:
    return untrained(PipelineConfig(width=8, blocks=1, fusion=fusion)).train()


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_parameter_of_encoder_fusion_and_generator_gets_a_gradient(fusion: str, batch: Batch) -> None:
    learner = pipeline(fusion)
    torch.autograd.backward(losses(learner, batch).total)
    without = [
        name
        for name, parameter in learner.named_parameters()
        if parameter.grad is None or not parameter.grad.isfinite().all() or parameter.grad.abs().max() < LEAST_GRADIENT
    ]
    assert without == []


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_few_steps_make_every_loss_that_counts_smaller(fusion: str, batch: Batch) -> None:
    learner = pipeline(fusion)
    optimiser = torch.optim.Adam(learner.parameters(), lr=2e-3)
    first, *_, last = [step(learner, optimiser, batch) for _ in range(STEPS)]
    assert last.total < 0.9 * first.total
    assert last.identity < first.identity
    assert last.reconstruction < first.reconstruction


def test_each_loss_reaches_the_parts_that_it_is_about(batch: Batch) -> None:
    reached = {}
    for name in ("identity", "reconstruction", "mask"):
        learner = pipeline("gated")
        torch.autograd.backward(getattr(losses(learner, batch), name))
        reached[name] = {
            part: any(p.grad is not None and bool(p.grad.abs().max() > 0) for p in module.parameters())
            for part, module in (
                ("encoder", learner.encoder),
                ("fusion", learner.swapper.fusion),
                ("generator", learner.swapper.generator),
            )
        }
    assert all(all(parts.values()) for parts in reached.values())


def test_a_frozen_encoder_stays_as_it_is(batch: Batch) -> None:
    learner = pipeline("linear")
    before = [parameter.clone() for parameter in learner.encoder.parameters()]
    step(learner, torch.optim.Adam(learner.swapper.parameters(), lr=1e-2), batch)
    assert all(torch.equal(old, new) for old, new in zip(before, learner.encoder.parameters(), strict=True))


def test_only_samples_whose_source_is_the_target_must_give_it_back(batch: Batch) -> None:
    learner = pipeline("linear")
    nobody = losses(learner, replace(batch, same=torch.zeros(6, dtype=torch.bool)))
    assert nobody.reconstruction == 0
    assert losses(learner, batch).reconstruction > 0


def test_calling_everybody_the_same_is_no_way_to_a_small_identity_loss(batch: Batch) -> None:
    collapsed = pipeline("linear")
    torch.nn.init.zeros_(collapsed.encoder.embed.weight)
    torch.testing.assert_close(losses(collapsed, batch).identity, torch.tensor(1.0), atol=1e-3, rtol=0)
