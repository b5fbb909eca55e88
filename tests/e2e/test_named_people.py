"""Two real people side by side: who was named gets the face that was named for them, and nobody else gets any."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from realtime import app
from realtime.assets import demo_photo, sample_source
from realtime.config import Settings, default_layer, flag, resolve
from realtime.errors import ConfigError, IdentityError, ModelError
from realtime.meter import Meter
from realtime.pipeline import Pipeline
from realtime.types import U8, Frame, Quality
from tests.cards import put
from tests.clips import make_clip
from tests.facenets import latent_swapper
from tests.faces import pictures_of
from tests.networks_identity import colourist
from tests.real import bareness, clip, face_of
from tests.real import open_networks as open_eyes

ROOT = Path(__file__).resolve().parents[2]
BARE = 0.9
"""See ``test_never_bare``."""
FULL = Quality(1.0, 5, frozenset())
MATCH = 0.65
"""Between the two people of these tests the recogniser of the tests finds 0.3 to 0.5, in one person above 0.7."""

SEARCH = 25
"""Frames in which the embedded detector, which looks at one part of the picture in each, finds a newcomer."""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models and cache of the test's own."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    monkeypatch.setattr("realtime.app.faces.user_cache_path", lambda *_, **__: tmp_path / "cache")
    put(folder, colourist())
    return folder


def made(**values: Any) -> Settings:
    values = {"faces__recogniser": "test_colourist", "faces__match": MATCH, **values}
    return resolve([default_layer(), *(flag("--test", key.replace("__", "."), value) for key, value in values.items())])


def shoot(settings: Settings, pictures: list[U8], meter: Meter | None = None) -> tuple[list[U8], Pipeline]:
    with app.open_networks(settings) as networks:
        faces = app.load_faces(settings, networks)
        pipeline = app.build_pipeline(settings, networks, faces, meter or Meter())
        shown = [
            pipeline.process(Frame(n, n / 30, picture.copy()), FULL, n / 30 + 0.01).pixels
            for n, picture in enumerate(pictures)
        ]
    return shown, pipeline


@pytest.fixture(scope="module")
def photos() -> list[U8]:
    """The two built-in photos as one picture of two people."""
    left, right = (np.asarray(cv2.imread(str(path)), np.uint8) for path in (sample_source(), demo_photo()))
    side = min(left.shape[0], right.shape[0])
    both = [cv2.resize(photo, (side, side), interpolation=cv2.INTER_AREA) for photo in (left, right)]
    return [np.ascontiguousarray(np.hstack(both))]


def halves(picture: U8) -> tuple[U8, U8]:
    middle = picture.shape[1] // 2
    return picture[:, :middle], picture[:, middle:]


@pytest.mark.parametrize("named", [0, 1])
def test_only_the_person_in_the_photo_is_swapped_from_the_first_frame_on(named: int, photos: list[U8]) -> None:
    reference = (sample_source(), demo_photo())[named]
    shown, pipeline = shoot(made(faces__only=[str(reference)], faces__match=0.8), photos * 3)
    for picture in shown:
        changed = [bool((now != was).any()) for now, was in zip(halves(picture), halves(photos[0]), strict=True)]
        assert changed == [named == 0, named == 1]
    assert len(pipeline.faces) == 1
    assert pipeline.failure == ""


def test_nobody_is_swapped_when_nobody_matches(photos: list[U8]) -> None:
    mirrored = np.ascontiguousarray(photos[0][:, ::-1])
    shown, _ = shoot(made(faces__only=[str(sample_source())], faces__match=1.0), [mirrored])
    np.testing.assert_array_equal(shown[0], mirrored)


@pytest.mark.data
@pytest.mark.parametrize("engine", ["mesh", "test_inswapper"])
def test_each_of_two_people_gets_the_face_that_was_named_for_them(
    engine: str, data_dir: Path, own_folders: Path
) -> None:
    put(own_folders, latent_swapper(recogniser="test_colourist"))
    left, right = clip(data_dir, "bird", 45), clip(data_dir, "book", 45)
    pictures = [np.ascontiguousarray(np.hstack(pair)) for pair in zip(left, right, strict=True)]
    them = [data_dir / "faces" / f"{name}.png" for name in ("bird", "book")]
    faces = [str(sample_source()), str(demo_photo())]

    def shown_with(order: list[str]) -> tuple[list[U8], Meter]:
        meter = Meter()
        pairs = [f"{who}={me}" for who, me in zip(them, order, strict=True)]
        shown, pipeline = shoot(made(faces__map=pairs, swap__engine=engine), pictures, meter)
        assert pipeline.failure == ""
        assert len(pipeline.faces) == 2
        return shown, meter

    one, meter = shown_with(faces)
    other, _ = shown_with(faces[::-1])
    with open_eyes() as eyes:
        for n in (0, 20, 44):
            for now, was in zip(halves(one[n]), (left[n], right[n]), strict=True):
                assert bareness(now, was, face_of(eyes[0], was)) < BARE
    for a, b in zip(halves(one[44]), halves(other[44]), strict=True):
        assert (a != b).any(), "another face for each"
    assert meter.snapshot().steps["recognise"].p50 >= 0
    alone, _ = shoot(made(faces__map=[f"{them[0]}={faces[0]}"], swap__engine=engine), pictures[:5])
    for picture, was in zip(alone, right, strict=False):
        np.testing.assert_array_equal(halves(picture)[1], was)


@pytest.mark.data
def test_a_newcomer_who_was_not_named_is_left_alone_and_one_who_was_is_swapped_at_once(data_dir: Path) -> None:
    left, right = clip(data_dir, "bird", 60), clip(data_dir, "book", 60)
    empty = np.zeros_like(left[0])
    pictures = [
        np.ascontiguousarray(np.hstack([a if n < 45 else empty, b if n >= 15 else empty]))
        for n, (a, b) in enumerate(zip(left, right, strict=True))
    ]
    shown, pipeline = shoot(made(faces__only=[str(data_dir / "faces" / "book.png")]), pictures)
    for n, picture in enumerate(shown):
        if n < 45:
            np.testing.assert_array_equal(halves(picture)[0], left[n])
    with open_eyes() as eyes:
        found = next(n for n in range(15, 60) if (halves(shown[n])[1] != right[n]).any())
        assert found <= 15 + SEARCH
        for n in range(found, 60, 9):
            assert bareness(halves(shown[n])[1], right[n], face_of(eyes[0], right[n])) < BARE
    assert pipeline.failure == ""


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ({"faces__only": ["none.jpg"]}, IdentityError, "there is no file none.jpg"),
        ({"faces__map": [f"{sample_source()}=none.jpg"]}, IdentityError, "there is no file none.jpg"),
        ({"faces__only": ["grey.png"]}, IdentityError, "grey.png shows no face"),
        ({"faces__only": [str(sample_source())], "faces__recogniser": "w600k_r50"}, ModelError, "w600k_r50"),
        (
            {"faces__only": [str(sample_source())], "faces__recogniser": "face_landmark"},
            ModelError,
            "recognises nobody",
        ),
        ({"faces__only": [str(sample_source())] * 2}, ConfigError, "named twice"),
        ({"swap__engine": "inswapper_128"}, ModelError, "w600k_r50"),
        ({"swap__engine": "w600k_r50"}, ModelError, "makes no faces"),
        ({"swap__engine": "inswaper_128"}, ModelError, "no model card"),
    ],
)
def test_what_cannot_be_had_is_told_before_anything_runs(
    values: dict[str, Any], error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cv2.imwrite("grey.png", np.full((200, 200, 3), 90, np.uint8))
    settings = made(**values)
    with app.open_networks(settings) as networks, pytest.raises(error, match=said):
        app.load_faces(settings, networks)


def test_the_banner_says_whose_face_goes_to_whom_and_what_is_odd_about_the_photos(
    photos: list[U8], tmp_path: Path, own_folders: Path
) -> None:
    put(own_folders, latent_swapper(recogniser="test_colourist"))
    both = tmp_path / "both.png"
    cv2.imwrite(str(both), photos[0])
    blue = tmp_path / "blue.png"
    cv2.imwrite(str(blue), np.asarray(cv2.imread(str(demo_photo())))[..., ::-1])
    settings = made(
        faces__only=[str(both)], faces__map=[f"{demo_photo()}={both}"], swap__engine="test_inswapper",
        source__photos=[str(sample_source()), str(blue)],
    )  # fmt: skip
    with app.open_networks(settings) as networks:
        facts = [text for label, text in app.load_faces(settings, networks).facts if label == "face"]
    assert facts[0] == "sample_source.jpg, blue.png, on the person of both.png"
    assert facts[1].startswith("both.png, on the person of")
    assert any("may not be of one person" in fact for fact in facts)
    assert any("both.png shows 2 faces" in fact for fact in facts)


def test_the_command_line_swaps_whom_it_is_told_remembers_it_and_keeps_what_it_learnt_private(
    photos: list[U8], tmp_path: Path
) -> None:
    make_clip(tmp_path / "two.mp4", photos * 10)
    own = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "APPDATA", "LOCALAPPDATA")
    home = {**os.environ, **dict.fromkeys(own, str(tmp_path)), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}

    def run(*options: str) -> str:
        command = [sys.executable, str(ROOT / "run_live.py"), *options]
        done = subprocess.run(
            [*command, "--set", "faces.recogniser=test_colourist", "--set", "faces.match=0.8"],
            env=home, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    shutil.copy(demo_photo(), tmp_path / "them.jpg")
    shutil.copy(sample_source(), tmp_path / "me.jpg")
    said = run("--map", "them.jpg=me.jpg", "--input", "two.mp4", "--output", "out.mp4", "--save", "us")
    assert "me.jpg, on the person of them.jpg" in said
    assert "mesh, on the people named" in said
    assert "test_colourist on onnxrt" in said
    shown, before = pictures_of(tmp_path / "out.mp4"), pictures_of(tmp_path / "two.mp4")
    assert len(shown) == len(before) == 10
    off = [
        [float(np.abs(a.astype(int) - b).mean()) for a, b in zip(halves(now), halves(was), strict=True)]
        for now, was in zip(shown, before, strict=True)
    ]
    assert max(left for left, _ in off) < 3.5, "what the codec makes of a picture that was left alone"
    assert min(right for _, right in off) > 4.5
    (kept,) = (tmp_path / "doppelcam" / "faces").iterdir()
    if sys.platform != "win32":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    profile = (tmp_path / "doppelcam" / "profiles" / "us.toml").read_text()
    assert f'map = ["{tmp_path}/them.jpg={tmp_path}/me.jpg"]' in profile
    assert "people" in run("--output", "null", "--duration", "1")
