"""Samples for whole numbers are what a swapper's network really gets when the faces of photos are swapped."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from engines.building.samples import read_samples
from engines.building.settings import BuildSettings, fixed
from engines.card import load_card
from realtime.assets import demo_photo, sample_source
from realtime.calibration import write_samples
from realtime.errors import ConfigError
from tests import cards, helpernets
from tests.facenets import latent_swapper


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    shutil.copy(demo_photo(), folder / "a.jpg")
    shutil.copy(sample_source(), folder / "b.jpg")
    (folder / "c.txt").write_text("no photo")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("boost", [1, 2])
def test_each_face_gets_that_of_another(mine: Path, photos: Path, out: Path, boost: int) -> None:
    cards.put(mine, helpernets.arcface())
    name = cards.put(mine, latent_swapper(side=64))
    told: list[str] = []
    assert write_samples(name, boost, photos, out, told.append) == 2
    assert len(told) == 1
    assert "c.txt" in told[0]
    card = fixed(load_card(name), BuildSettings(pictures=boost * boost))
    one, other = read_samples(out, card, None, lambda *_: None)
    assert one["target"].shape == (boost * boost, 3, 64, 64)
    assert one["target"].std() > 0.05, "a face, not one colour"
    assert not np.array_equal(one["target"], other["target"])
    assert float(np.vdot(one["source"], other["source"])) < 0.999
    assert np.linalg.norm(one["source"]) == pytest.approx(1, abs=1e-5)


def test_photos_without_faces_are_refused(mine: Path, out: Path, tmp_path: Path) -> None:
    name = cards.put(mine, latent_swapper(side=64))
    with pytest.raises(ConfigError, match=r"0 photos of .* show a face, 2 are needed"):
        write_samples(name, 1, out, tmp_path, lambda _: None)
