"""Every line of the table of swapper families, held to the contract."""

from __future__ import annotations

import numpy as np
import pytest

from engines.registry import open_device
from realtime.config import load
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.models import Models
from realtime.swappers import FAMILIES, OPTIONAL_STEPS, Kit, Look, family
from tests.faces import Eyes, face_of


def test_the_default_needs_no_model() -> None:
    assert load(None, []).swap.engine in FAMILIES


@pytest.mark.parametrize("name", ["mesh"])
def test_a_family_swaps_a_face_inside_its_rectangle_and_refuses_one_outside(name: str, eyes: Eyes) -> None:
    from realtime.assets import sample_source

    pixels, mesh = eyes.portrait(sample_source())
    portrait = Portrait(str(sample_source()), pixels, mesh, 1)
    models = Models()
    kit = Kit(open_device("cpu"), models, name, Look(), Meter())
    swapper = family(name, models).open_swapper(family(name, models).identify([portrait], kit), kit)
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
