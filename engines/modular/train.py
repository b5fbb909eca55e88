"""One training step: what a batch holds and what the losses ask for. Knows no data set, no schedule and no GPU.

This is not a trainer. What is missing for pictures that convince is named here, so that nobody expects them: an
adversarial loss, millions of faces, days on a GPU, and an encoder that learned identities from labelled faces first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor
from torch.optim import Optimizer

from engines.modular.encoder import FACE
from engines.modular.swapper import Pipeline


@dataclass(frozen=True, slots=True)
class Batch:
    """What a step learns from.

    Attributes:
        face: (B, 3, 112, 112) RGB, ``pixel / 127.5 - 1``, template arcface_112_v2: the sources, B >= 2 different
            people.
        target: (B, 3, S, S) RGB, same range, template arcface_128, S a multiple of 16.
        same: (B,) bool: source and target are the same picture, so the swap must give the target back.
    """

    face: Tensor
    target: Tensor
    same: Tensor


@dataclass(frozen=True, slots=True)
class Losses:
    """What a step found, before it changed anything; scalars.

    Attributes:
        identity: the shown picture should be its source (cosine 1) and nobody else in the batch (cosine 0 or less).
            The second half keeps an encoder that is trained along from calling everybody the same.
        reconstruction: mean absolute difference from the target, 0..1, over the samples whose source is the target.
        mask: mean of the mask and of the steps between its neighbours: as small and as smooth as the rest allows.
    """

    identity: Tensor
    reconstruction: Tensor
    mask: Tensor

    @property
    def total(self) -> Tensor:
        """The weighted sum; identity to reconstruction 1 : 2 as in FaceShifter (Li et al., CVPR 2020)."""
        return self.identity + 2 * self.reconstruction + 0.1 * self.mask


def losses(pipeline: Pipeline, batch: Batch) -> Losses:
    """Swap a batch and judge the result.

    Args:
        pipeline: in training mode, or not.
        batch: what to swap.

    Returns:
        The losses, with gradients to every parameter.
    """
    source = F.normalize(pipeline.encoder(batch.face))
    picture, mask = pipeline.swapper(batch.target, source)
    target = batch.target * 0.5 + 0.5
    shown = target + mask * (picture - target)  # identity is judged where people see it, which opens the mask
    swapped = F.normalize(pipeline.encoder(encoder_view(shown)))
    missed = (picture - target).abs().mean(dim=(1, 2, 3))
    across, down = mask.diff(dim=3).abs().mean(), mask.diff(dim=2).abs().mean()
    return Losses(
        identity=_identity(swapped, source),
        reconstruction=(missed * batch.same).sum() / batch.same.sum().clamp(min=1),
        mask=mask.mean() + across + down,
    )


def step(pipeline: Pipeline, optimiser: Optimizer, batch: Batch) -> Losses:
    """Learn from one batch.

    Args:
        pipeline: changed in place.
        optimiser: of those parameters that shall learn; an encoder that was trained elsewhere is left out.
        batch: what to learn from.

    Returns:
        The losses before the change.
    """
    pipeline.train()
    optimiser.zero_grad(set_to_none=True)
    found = losses(pipeline, batch)
    torch.autograd.backward(found.total)
    optimiser.step()
    return found


def encoder_view(picture: Tensor) -> Tensor:
    """Cut what the encoder looks at out of a swapped crop.

    The template arcface_128 is arcface_112_v2 moved by 8 of 128 to the right, so one crop lies in the other and no
    resampling is needed to cut it.

    Args:
        picture: (B, 3, S, S) RGB 0..1, S a multiple of 16.

    Returns:
        (B, 3, 112, 112) in the encoder's range.
    """
    unit = picture.shape[-1] // 16
    face = picture[..., : 14 * unit, unit : 15 * unit]
    return F.interpolate(face, (FACE, FACE), mode="area") * 2 - 1


def _identity(swapped: Tensor, source: Tensor) -> Tensor:
    """Cosine embedding loss with margin 0 over all pairs: (B, 512), (B, 512), both unit norm -> scalar."""
    cosine = swapped @ source.T
    own = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
    return (1 - cosine[own]).mean() + cosine[~own].clamp(min=0).mean()
