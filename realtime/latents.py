"""Makes the vector that tells a swapper the identity out of photos; knows conventions, not what is done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import ConfigDict, with_config

from engines.contract import Device
from realtime.identity import Portrait
from realtime.models import Models
from realtime.recognise import Recogniser
from realtime.types import F32


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class LatentRule:
    """How a swapper of the family "latent" wants the identity; e is the recogniser's vector.

    Attributes:
        recogniser: card of the network that makes e.
        kind: "unit", e / |e|.
    """

    recogniser: str
    kind: Literal["unit"]


def latent_of(portraits: Sequence[Portrait], rule: LatentRule, models: Models, device: Device) -> F32:
    """Derive the identity from photos of one face, one or more.

    Args:
        portraits: of the face; each counts the same.
        rule: the swapper's.
        models: opens what is needed.
        device: that cuts the crops out.

    Returns:
        (1, n) float32.
    """
    recogniser = Recogniser(models.card(rule.recogniser), models.open(rule.recogniser), device)
    each = [recogniser.embed(portrait.pixels, portrait.points5) for portrait in portraits]
    mean = np.mean([vector / np.linalg.norm(vector) for vector in each], axis=0)
    return (mean / np.linalg.norm(mean))[None].astype(np.float32)
