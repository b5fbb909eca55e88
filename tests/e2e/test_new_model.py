"""A model that nobody has heard of, of a family that is known: a TOML file and its weights are all that it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from onnx import helper

from realtime.assets import demo_photo, sample_source
from realtime.types import U8
from tests.conftest import ROOT
from tests.faces import Eyes, face_of
from tests.networks import constant, tensor, write
from tests.real import bareness

SWAPPER = """
name = "negative"
file = "negative.onnx"
size_bytes = {size_bytes}
sha256 = "{sha256}"
family = "latent"
runtimes = ["onnxrt"]

[licence]
name = "CC0-1.0"
holder = "this test"
commercial_use = true
origin = "made here"

[[inputs]]
name = "face"
shape = [1, 3, 96, 96]
layout = "NCHW"
colour = "RGB"
mean = [0.0, 0.0, 0.0]
scale = [0.00392156862745098, 0.00392156862745098, 0.00392156862745098]

[[inputs]]
name = "who"
shape = [1, 8]

[[outputs]]
name = "made"
shape = [1, 3, 96, 96]
layout = "NCHW"
colour = "RGB"
mean = [0.0, 0.0, 0.0]
scale = [0.00392156862745098, 0.00392156862745098, 0.00392156862745098]

[decode]
template = "ffhq_512"
target = "face"
source = "who"
picture = "made"

[decode.latent]
recogniser = "mean_colour"
kind = "unit"
"""
RECOGNISER = """
name = "mean_colour"
file = "mean_colour.onnx"
size_bytes = {size_bytes}
sha256 = "{sha256}"
family = "arcface"
runtimes = ["onnxrt"]

[licence]
name = "CC0-1.0"
holder = "this test"
commercial_use = true
origin = "made here"

[[inputs]]
name = "face"
shape = [1, 3, 112, 112]
layout = "NCHW"
colour = "RGB"
mean = [127.5, 127.5, 127.5]
scale = [0.00784313725490196, 0.00784313725490196, 0.00784313725490196]

[[outputs]]
name = "who"
shape = [1, 8]

[decode]
template = "arcface_112_v2"
"""


def negative(path: Path) -> Path:
    """A swapper that turns light and dark around, and is a little lighter for some people than for others."""
    nodes = [
        helper.make_node("Sub", ["one", "face"], ["turned"]),
        helper.make_node("ReduceMean", ["who"], ["mean"], keepdims=1),
        helper.make_node("Mul", ["mean", "little"], ["lighter"]),
        helper.make_node("Add", ["turned", "lighter"], ["made"]),
    ]
    weights = [constant("one", np.ones(1, np.float32)), constant("little", np.full(1, 0.05, np.float32))]
    side = (1, 3, 96, 96)
    return write(path, nodes, [tensor("face", side), tensor("who", (1, 8))], [tensor("made", side)], weights)


def mean_colour(path: Path) -> Path:
    """A recogniser that tells people by the colour of their faces."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["face"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("MatMul", ["flat", "mixed"], ["who"]),
    ]
    mixed = constant("mixed", np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32))
    return write(path, nodes, [tensor("face", (1, 3, 112, 112))], [tensor("who", (1, 8))], [mixed])


def dfm(path: Path) -> Path:
    """A DFM model that turns light and dark around everywhere in its crop."""
    nodes = [
        helper.make_node("Sub", ["one", "in_face:0"], ["out_celeb_face:0"]),
        helper.make_node("ReduceMean", ["in_face:0"], ["grey"], axes=[3], keepdims=1),
        helper.make_node("Mul", ["grey", "none"], ["black"]),
        helper.make_node("Add", ["black", "one"], ["out_face_mask:0"]),
        helper.make_node("Identity", ["out_face_mask:0"], ["out_celeb_face_mask:0"]),
    ]
    weights = [constant("one", np.ones(1, np.float32)), constant("none", np.zeros(1, np.float32))]
    face, mask = (1, 256, 256, 3), (1, 256, 256, 1)
    outputs = [tensor("out_face_mask:0", mask), tensor("out_celeb_face:0", face), tensor("out_celeb_face_mask:0", mask)]
    return write(path, nodes, [tensor("in_face:0", face)], outputs, weights)


def describe(weights: Path, card: str) -> None:
    """Write the card of a file beside it, as a person would."""
    data = weights.read_bytes()
    text = card.format(size_bytes=len(data), sha256=sha256(data).hexdigest())
    weights.with_suffix(".toml").write_text(text, encoding="utf-8")


def program(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    own = {name: str(home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA")}
    env = {**os.environ, **own, "DOPPELCAM_MODELS": str(home / "models"), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    command: Sequence[str] = [sys.executable, "-c", "from realtime.cli import main; main()", *arguments]
    return subprocess.run(
        command, env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def swapped(home: Path, *arguments: str) -> U8:
    """Swap the face in a short film of a photo with the program, and give back a picture that it made."""
    photo = cv2.imread(str(demo_photo()))
    assert photo is not None
    film = cv2.VideoWriter(str(home / "film.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 30, photo.shape[1::-1])
    for _ in range(3):
        film.write(photo)
    film.release()
    live = ["live", "--input", "film.avi", "--output", "out.mp4", *arguments]
    done = program(home, *live, "--set", "swap.colour=0")
    assert done.returncode == 0, done.stderr
    with av.open(str(home / "out.mp4")) as made:
        pictures = [np.asarray(picture.to_ndarray(format="bgr24"), np.uint8) for picture in made.decode(video=0)]
    assert len(pictures) == 3, done.stdout
    return pictures[-1]


def turned(shown: U8, eyes: Eyes) -> bool:
    """Whether light and dark are turned around in the middle of the face, and nowhere above it."""
    photo, mesh = eyes.portrait(demo_photo())
    box = face_of(mesh).box_xyxy
    middle = np.concatenate([box[:2] * 0.7 + box[2:] * 0.3, box[:2] * 0.3 + box[2:] * 0.7])
    above = np.array([0, 0, photo.shape[1], box[1] / 3], np.float32)
    return bareness(shown, photo, middle) < -0.5 and bareness(shown, photo, above) > 0.9


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def test_a_new_model_of_a_known_family_is_one_toml_file(tmp_path: Path, models: Path, eyes: Eyes) -> None:
    describe(mean_colour(models / "mean_colour.onnx"), RECOGNISER)
    weights = negative(models / "negative.onnx")
    missing = program(tmp_path, "live", "--input", "demo", "--source", str(sample_source()), "--model", "negative")
    assert missing.returncode == 4
    assert "no model card 'negative'" in missing.stderr

    describe(weights, SWAPPER)
    shown = swapped(tmp_path, "--source", str(sample_source()), "--model", "negative")
    assert turned(shown, eyes)
    listed = program(tmp_path, "models", "list")
    assert re.search(r"^ +negative +\d.* yours ", listed.stdout, re.MULTILINE), listed.stdout


def test_the_card_of_a_dfm_model_in_the_readme_is_all_that_such_a_model_needs(
    tmp_path: Path, models: Path, eyes: Eyes
) -> None:
    card = re.search(r"```toml\n(# my_face\.toml\n.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert card
    (models / "my_face.toml").write_text(card[1], encoding="utf-8")
    downloaded = dfm(tmp_path / "downloaded.dfm")
    refused = program(tmp_path, "live", "--model", "my_face")
    assert refused.returncode == 4
    added = program(tmp_path, "models", "add", str(downloaded), "--as", "my_face", "--yes")
    assert added.returncode == 0, added.stderr
    assert turned(swapped(tmp_path, "--model", "my_face"), eyes)
