"""The generator: a target crop is taken apart, and put together again with another identity; knows no faces' numbers.

It speaks of a code and does not know how that was made: see ``fusion.py``.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from engines.modular.attention import Attention

HALVINGS = 3
"""How often the crop is halved on the way down: 128 -> 16, 256 -> 32."""

_SLOPE = 0.2  # of the leaky rectifiers, as is usual in generators since DCGAN


class AdaIN(nn.Module):
    """Adaptive instance normalisation: the code sets mean and spread of each channel, and so what is drawn.

    Huang and Belongie, "Arbitrary Style Transfer in Real-time with Adaptive Instance Normalization", ICCV 2017.
    """

    def __init__(self, channels: int, code: int) -> None:
        super().__init__()
        self.style = nn.Linear(code, 2 * channels)

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """(B, C, H, W), (B, Z) -> (B, C, H, W)."""
        spread, mean = self.style(code)[:, :, None, None].chunk(2, dim=1)
        return F.instance_norm(x) * (1 + spread) + mean


class IdentityBlock(nn.Module):
    """A residual block of the bottleneck: two convolutions, each normalised by the code, then attention.

    The arrangement of SimSwap's ID block (Chen et al., ACM MM 2020), with attention to choose where identity is drawn.
    """

    def __init__(self, channels: int, code: int) -> None:
        super().__init__()
        # No biases: the normalisation after them takes the mean away.
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = AdaIN(channels, code)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = AdaIN(channels, code)
        self.attention = Attention(channels)

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """(B, C, H, W), (B, Z) -> (B, C, H, W)."""
        y = F.leaky_relu(self.first_norm(self.first(x), code), _SLOPE)
        y = self.second_norm(self.second(y), code)
        out: Tensor = x + self.attention(y)
        return out


class UpStep(nn.Module):
    """Doubles the picture, and adds of the target's features at that size what attention lets pass.

    Nearest neighbours and a convolution instead of a transposed one, which leaves a chequered pattern (Odena et al.,
    Distill 2016). The skip carries hair, light and background; unfiltered it would carry the target's identity too.
    """

    def __init__(self, channels_in: int, channels: int, code: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, 3, padding=1, bias=False)
        self.norm = AdaIN(channels, code)
        self.skip = Attention(channels)

    def forward(self, x: Tensor, skip: Tensor, code: Tensor) -> Tensor:
        """(B, C_in, H, W), (B, C, 2 H, 2 W), (B, Z) -> (B, C, 2 H, 2 W)."""
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = F.leaky_relu(self.norm(self.conv(x), code), _SLOPE)
        out: Tensor = x + self.skip(skip)
        return out


class Generator(nn.Module):
    """Encoder and decoder with skips; works on any size that halves ``HALVINGS`` times."""

    def __init__(self, width: int, blocks: int, code: int) -> None:
        """Build it.

        Args:
            width: channels at full size; doubled at each halving.
            blocks: identity blocks in the bottleneck, >= 1.
            code: length of the code.
        """
        super().__init__()
        widths = [width * 2**level for level in range(HALVINGS + 1)]
        steps = list(pairwise(widths))
        self.attributes = widths[-1]
        """Channels of the coarsest features."""
        self.stem = _down(3, width, stride=1)
        self.down = nn.ModuleList(_down(outer, inner, stride=2) for outer, inner in steps)
        self.bottleneck = nn.ModuleList(IdentityBlock(widths[-1], code) for _ in range(blocks))
        self.up = nn.ModuleList(UpStep(inner, outer, code) for outer, inner in reversed(steps))
        self.head = nn.Conv2d(width, 4, 3, padding=1)

    def analyse(self, target: Tensor) -> list[Tensor]:
        """Take a target apart.

        Args:
            target: (B, 3, H, W) RGB, ``pixel / 127.5 - 1``.

        Returns:
            Features, finest first: (B, width, H, W), (B, 2 width, H / 2, W / 2), ...
        """
        features = [self.stem(target)]
        for step in self.down:
            features.append(step(features[-1]))
        return features

    def synthesise(self, features: list[Tensor], code: Tensor) -> tuple[Tensor, Tensor]:
        """Put a picture together.

        Args:
            features: from :meth:`analyse`.
            code: (B, Z).

        Returns:
            Picture (B, 3, H, W) RGB 0..1, and mask (B, 1, H, W) 0..1: how much of it is to be shown at each place.
        """
        *skips, x = features
        for block in self.bottleneck:
            x = block(x, code)
        for step in self.up:
            x = step(x, skips.pop(), code)
        drawn = torch.sigmoid(self.head(x))
        return drawn[:, :3], drawn[:, 3:]

    def forward(self, target: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`analyse` and :meth:`synthesise` in one: (B, 3, H, W), (B, Z) -> picture, mask."""
        return self.synthesise(self.analyse(target), code)


def _down(channels_in: int, channels: int, stride: int) -> nn.Sequential:
    """Convolution, batch normalisation (folds into it at export) and rectifier; halves the picture at stride 2."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.LeakyReLU(_SLOPE),
    )
