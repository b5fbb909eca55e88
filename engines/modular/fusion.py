"""How the identity of the source and the attributes of the target become one code; knows no pictures.

A strategy is a module with the contract of :class:`Fusion` and one line in ``FUSIONS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Fusion(nn.Module, ABC):
    """What a strategy promises.

    Args:
        source: length S of the identity.
        target: length T of the attributes.
        code: length Z of the code.
    """

    @abstractmethod
    def __init__(self, source: int, target: int, code: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Fuse.

        Args:
            source: (B, S) identity of the source, unit norm.
            target: (B, T) attributes of the target: what its pose, light and expression left in the features.

        Returns:
            (B, Z) code that the generator is steered with.
        """


class LinearFusion(Fusion):
    """A learned weighted mix: ``z = W_s s + W_t t + b``."""

    def __init__(self, source: int, target: int, code: int) -> None:
        super().__init__(source, target, code)
        self.source = nn.Linear(source, code)
        self.target = nn.Linear(target, code, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """See :class:`Fusion`."""
        code: Tensor = self.source(source) + self.target(target)
        return code


class GatedFusion(Fusion):
    """A gate for each channel decides how much identity enters it: ``z = g W_s s + (1 - g) W_t t``.

    ``g = sigmoid(W [s, t] + b)`` sees both sides, so a channel can give way when the target needs it, e.g. in profile.
    Arevalo et al., "Gated Multimodal Units for Information Fusion", 2017.
    """

    def __init__(self, source: int, target: int, code: int) -> None:
        super().__init__(source, target, code)
        self.source = nn.Linear(source, code)
        self.target = nn.Linear(target, code)
        self.gate = nn.Linear(source + target, code)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """See :class:`Fusion`."""
        gate = torch.sigmoid(self.gate(torch.cat((source, target), dim=1)))
        code: Tensor = gate * self.source(source) + (1 - gate) * self.target(target)
        return code


FUSIONS: Mapping[str, type[Fusion]] = {"linear": LinearFusion, "gated": GatedFusion}
"""Name -> strategy."""
