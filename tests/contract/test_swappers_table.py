"""Every line of the table of swapper families, held to the contract."""

from __future__ import annotations

import numpy as np
import pytest

from engines.registry import open_device
from realtime.config import load
from realtime.config.settings import SwapSettings
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.swappers import FAMILIES, OPTIONAL_STEPS, Look, family
from tests.faces import Eyes, face_of


def test_the_settings_offer_what_the_table_has() -> None:
    engines = SwapSettings.model_fields["engine"].annotation
    assert set(engines.__args__) == set(FAMILIES)  # type: ignore[union-attr]
    assert load(None, []).swap.engine in FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_swaps_a_face_inside_its_rectangle_and_refuses_one_outside(name: str, eyes: Eyes) -> None:
    from realtime.assets import sample_source

    pixels, mesh = eyes.portrait(sample_source())
    portrait = Portrait(str(sample_source()), pixels, mesh, 1)
    swapper = family(name).open_swapper(open_device("cpu"), family(name).identify([portrait]), Look(), Meter())
    picture = pixels.copy()
    assert swapper.swap(picture, face_of(mesh), 0.0, OPTIONAL_STEPS)
    changed = np.argwhere((picture != pixels).any(-1))
    left, top, right, bottom = face_of(mesh).box_xyxy
    grown = 0.1 * (bottom - top)
    assert len(changed) > 0
    assert (changed.min(0) >= (top - grown, left - grown)).all()
    assert (changed.max(0) <= (bottom + grown, right + grown)).all()
    away = mesh + np.array([5000, 0, 0], np.float32)
    before = picture.copy()
    assert not swapper.swap(picture, face_of(away, 2), 0.1, OPTIONAL_STEPS)
    np.testing.assert_array_equal(picture, before)
    swapper.forget([])
