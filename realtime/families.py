"""What each family of models is for, and who reads the ``[decode]`` of its cards; knows no model."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

NO_USE = "has no use yet"
"""What is said of a family that is not in ``FAMILIES``."""


@dataclass(frozen=True, slots=True)
class Family:
    """A line of ``FAMILIES``.

    Attributes:
        role: what its models do, in few words: a list shows it beside the name.
        rule: the dataclass of its ``[decode]`` as "module:Class"; empty for a family that needs no such table.
    """

    role: str
    rule: str = ""


FAMILIES: dict[str, Family] = {
    "latent": Family("makes faces", "realtime.swappers.latent:LatentSwapperRule"),
    "image": Family("makes faces", "realtime.swappers.image:ImageSwapperRule"),
    "dfm": Family("makes one face", "realtime.swappers.dfm:DfmRule"),
    "converter": Family("translates identities"),
    "arcface": Family("recognises people", "realtime.people.recognise:RecogniserRule"),
    "ssd": Family("finds faces", "realtime.detect.ssd:SsdDecode"),
    "scrfd": Family("finds faces", "realtime.detect.whole:GridDecode"),
    "yunet": Family("finds faces", "realtime.detect.whole:GridDecode"),
    "mesh": Family("follows faces", "realtime.landmarks:MeshDecode"),
    "occlusion": Family("sees obstacles", "realtime.opacity.networks:OcclusionRule"),
    "regions": Family("tells skin from hair", "realtime.opacity.networks:RegionsRule"),
    "enhancer": Family("makes faces finer", "realtime.enhance:EnhancerRule"),
}
"""The families that the program has a use for, by the name that cards state."""


def role_of(family: str) -> str:
    """Say what the models of a family do, in few words."""
    return FAMILIES[family].role if family in FAMILIES else NO_USE


def rule_of(family: str) -> type | None:
    """Import the dataclass of a family's ``[decode]``.

    Args:
        family: any name.

    Returns:
        The class; ``None`` for a family without such a table, or without a use.
    """
    target = FAMILIES[family].rule if family in FAMILIES else ""
    if not target:
        return None
    module, _, name = target.partition(":")
    found: type = getattr(importlib.import_module(module), name)
    return found
