"""Attention over channels and over places, as layers that only scale what passes them; knows no network."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ChannelAttention(nn.Module):
    """Squeeze and excitation: how much each channel counts, judged from its mean over the picture.

    Hu et al., "Squeeze-and-Excitation Networks", CVPR 2018.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = max(channels // 8, 4)
        self.squeeze = nn.Conv2d(channels, hidden, 1)
        self.excite = nn.Conv2d(hidden, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Scale each channel: (B, C, H, W) -> the same shape."""
        mean = x.mean(dim=(2, 3), keepdim=True)
        weight: Tensor = torch.sigmoid(self.excite(torch.relu(self.squeeze(mean))))
        return x * weight


class SpatialAttention(nn.Module):
    """How much each place counts, judged from the mean and the greatest value over its channels.

    Woo et al., "CBAM: Convolutional Block Attention Module", ECCV 2018; the 7x7 window is theirs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.judge = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x: Tensor) -> Tensor:
        """Scale each place: (B, C, H, W) -> the same shape."""
        summary = torch.cat((x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)), dim=1)
        weight: Tensor = torch.sigmoid(self.judge(summary))
        return x * weight


class Attention(nn.Sequential):
    """Channels first, then places: the order that CBAM found best."""

    def __init__(self, channels: int) -> None:
        super().__init__(ChannelAttention(channels), SpatialAttention())
