"""The identity encoder: an aligned face -> who it is, in 512 numbers; knows nothing of swapping."""

from __future__ import annotations

from torch import Tensor, nn

from engines.modular.attention import ChannelAttention

FACE = 112
"""Side of its input in pixels."""

IDENTITY = 512
"""Length of the embedding."""

_STAGES = 4  # each halves the picture: 112 -> 7
_BLOCKS = 2  # in each stage


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and channel attention beside a shortcut, as in ArcFace's IR-SE networks.

    Normalisation follows its convolution (ArcFace also has one before the first), so that all of it folds into the
    convolutions when the model is exported.
    """

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.PReLU(channels),
            nn.Conv2d(channels, channels, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            ChannelAttention(channels),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(B, C_in, H, W) -> (B, C, H / stride, W / stride)."""
        out: Tensor = self.shortcut(x) + self.branch(x)
        return out


class IdentityEncoder(nn.Module):
    """A compact residual network with ArcFace's contract: same crop, same range, same kind of embedding.

    Deng et al., "ArcFace", CVPR 2019. The head is a depthwise convolution over the last 7x7 places instead of a dense
    layer, which would hold most of the weights: Chen et al., "MobileFaceNets", CCBR 2018.
    """

    def __init__(self, width: int) -> None:
        """Build it.

        Args:
            width: channels at full size; doubled at each of the four stages but the first.
        """
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.PReLU(width))
        widths = [width * 2**stage for stage in range(_STAGES)]
        blocks: list[nn.Module] = []
        for channels_in, channels in zip((width, *widths), widths, strict=False):
            blocks.append(ResidualBlock(channels_in, channels, stride=2))
            blocks += [ResidualBlock(channels, channels, stride=1) for _ in range(_BLOCKS - 1)]
        self.body = nn.Sequential(*blocks)
        last = widths[-1]
        self.gather = nn.Conv2d(last, last, FACE >> _STAGES, groups=last, bias=False)
        self.embed = nn.Linear(last, IDENTITY)

    def forward(self, face: Tensor) -> Tensor:
        """Embed faces.

        Args:
            face: (B, 3, 112, 112) RGB, ``pixel / 127.5 - 1``, aligned to the template arcface_112_v2.

        Returns:
            (B, 512). Not normalised, like the published ArcFace models: whoever compares or swaps divides by the norm.
        """
        x = self.gather(self.body(self.stem(face)))
        embedding: Tensor = self.embed(x.flatten(1))
        return embedding
