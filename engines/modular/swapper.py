"""Encoder, fusion and generator together: source identity and target crop -> swapped picture and mask.

Knows how the parts are joined, not how they work.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from engines.errors import ModelError
from engines.modular.encoder import IDENTITY, IdentityEncoder
from engines.modular.fusion import FUSIONS
from engines.modular.generator import Generator

CODE = 256
"""Length of the code between fusion and generator."""


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """What decides the shape of every weight. The size of the crop does not: all parts but the encoder take any.

    Attributes:
        width: channels at full size, of the encoder and the generator, >= 1.
        blocks: identity blocks in the generator's bottleneck, >= 1.
        fusion: name in :data:`engines.modular.fusion.FUSIONS`.

    Raises:
        ModelError: a value is out of range.
    """

    width: int = 32
    blocks: int = 6
    fusion: str = "linear"

    def __post_init__(self) -> None:
        if self.fusion not in FUSIONS:
            raise ModelError(f"there is no fusion {self.fusion!r}", f"use one of: {', '.join(FUSIONS)}")
        for name, value in (("width", self.width), ("blocks", self.blocks)):
            if value < 1:
                raise ModelError(f"{name} {value} is too small", f"use a {name} of 1 or more")


class Swapper(nn.Module):
    """The part that runs for every frame."""

    def __init__(self, config: PipelineConfig) -> None:
        super().__init__()
        self.generator = Generator(config.width, config.blocks, CODE)
        self.fusion = FUSIONS[config.fusion](IDENTITY, self.generator.attributes, CODE)

    def forward(self, target: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
        """Swap.

        Args:
            target: (B, 3, H, W) RGB, ``pixel / 127.5 - 1``, H and W multiples of 8, aligned to the template
                arcface_128.
            source: (B, 512) embedding of the source by :class:`IdentityEncoder`, divided by its norm.

        Returns:
            Picture (B, 3, H, W) RGB 0..1, and mask (B, 1, H, W) 0..1.
        """
        features = self.generator.analyse(target)
        code = self.fusion(source, features[-1].mean(dim=(2, 3)))
        return self.generator.synthesise(features, code)


class Pipeline(nn.Module):
    """Everything that is trained together and saved in one checkpoint: ``encoder.*`` and ``swapper.*``."""

    def __init__(self, config: PipelineConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = IdentityEncoder(config.width)
        self.swapper = Swapper(config)
