"""Every line of the table of swapper families, held to the contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from realtime import families
from realtime.config import load
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.swappers import FAMILIES, MESH, OPTIONAL_STEPS, Kit, Look, family, scales
from realtime.types import U8, Face
from tests import cards
from tests.facenets import EVERY
from tests.faces import Eyes, face_of
from tests.swapstage import SwapStage

REACH = 0.9
"""How far beyond the face's box the new face may be shown, in heights of the box: the widest crops hold a whole head,
and the masks that random networks make are no faces."""


@pytest.fixture
def portrait(eyes: Eyes) -> Portrait:
    from realtime.assets import sample_source

    return Portrait(str(sample_source()), *eyes.portrait(sample_source()), 1)


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Kit]:
    """What a family works with, by "mesh" or the kind of a network."""
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    stage = SwapStage(tmp_path)

    def kit(name: str) -> Kit:
        card = name if name == MESH else cards.put(tmp_path, EVERY[name](1))
        return Kit(stage.device, stage.models, card, Look(), Meter())

    return kit


def test_the_default_needs_no_model() -> None:
    assert load(None, []).swap.engine in FAMILIES


def test_every_family_is_tried_and_known_to_the_readers_of_cards() -> None:
    kinds = {MESH, *(build(1).card.family for build in EVERY.values())}
    assert kinds == set(FAMILIES)
    assert set(FAMILIES) <= set(families.FAMILIES)


def test_only_what_has_no_crop_of_its_own_gains_by_a_smaller_picture() -> None:
    assert [name for name in (MESH, "inswapper_128") if scales(name)] == [MESH]


@pytest.mark.parametrize("name", [MESH, *EVERY])
def test_a_family_swaps_a_face_where_it_is_and_refuses_one_outside(
    name: str, kit: Callable[[str], Kit], portrait: Portrait
) -> None:
    its = kit(name)
    made = family(its.name, its.models)
    swapper = made.open_swapper(made.identify([portrait] if made.TAKES_PHOTOS else [], its), its)
    pixels, face = portrait.pixels, face_of(portrait.mesh)
    picture = pixels.copy()
    assert swapper.swap(picture, face, 0.0, OPTIONAL_STEPS)
    assert_painted_around(face, pixels, picture)
    away = portrait.mesh + np.array([5000, 0, 0], np.float32)
    before = picture.copy()
    assert not swapper.swap(picture, face_of(away, 2), 0.1, OPTIONAL_STEPS)
    np.testing.assert_array_equal(picture, before)
    swapper.forget([])
    assert swapper.swap(pixels.copy(), face, 0.2, ())


@pytest.mark.parametrize("name", [MESH, *EVERY])
def test_two_people_do_not_change_each_other(name: str, kit: Callable[[str], Kit], portrait: Portrait) -> None:
    """What is remembered of one is another's no more than the order of the calls is."""
    its = kit(name)
    made = family(its.name, its.models)
    identity = made.identify([portrait] if made.TAKES_PHOTOS else [], its)
    pixels, shown = portrait.pixels, []
    for others in (False, True):
        swapper = made.open_swapper(identity, its)
        for number in range(4):
            if others:
                assert swapper.swap(255 - pixels, face_of(portrait.mesh, 2), number / 30, OPTIONAL_STEPS)
            picture = pixels.copy()
            assert swapper.swap(picture, face_of(portrait.mesh, 1), number / 30, OPTIONAL_STEPS)
        shown.append(picture)
    np.testing.assert_array_equal(shown[0], shown[1])


def assert_painted_around(face: Face, before: U8, after: U8) -> None:
    changed = np.argwhere((after != before).any(-1))
    left, top, right, bottom = face.box_xyxy
    grown = REACH * (bottom - top)
    assert len(changed) > 0
    assert (changed.min(0) >= (top - grown, left - grown)).all()
    assert (changed.max(0) <= (bottom + grown, right + grown)).all()
