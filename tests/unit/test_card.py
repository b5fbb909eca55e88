from __future__ import annotations

from pathlib import Path

import pytest

from engines.card import FOLDER, load_card
from engines.errors import ModelError

GOOD = (FOLDER / "face_landmark.toml").read_text(encoding="utf-8").replace('"face_landmark"', '"mine"', 1)


def write(folder: Path, text: str) -> Path:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_good_card_is_read_into_frozen_values(tmp_path: Path) -> None:
    card = load_card("mine", write(tmp_path, GOOD))
    assert card.inputs[0].shape == (1, 192, 192, 3)
    assert card.licence.commercial_use is True
    assert hash(card.inputs[0])
    with pytest.raises(AttributeError):
        card.name = "other"  # type: ignore[misc]  # that is the point


def test_an_unknown_card_names_those_there_are() -> None:
    with pytest.raises(ModelError, match="no model card 'nose'") as caught:
        load_card("nose")
    assert "face_landmark" in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('file = "face_landmark.tflite"\n', "", "file: Field required"),
        ("size_bytes = 2439440", 'size_bytes = "large"', "size_bytes: Input should be a valid integer"),
        ("commercial_use = true", "comercial_use = true", "licence.commercial_use: Field required"),
        ('layout = "NHWC"', 'layout = "NHCW"', "inputs.0.layout: Input should be"),
        ('colour = "RGB"', 'color = "RGB"', "inputs.0: unknown key color"),
        ("[licence]", "secret = 1\n[licence]", "secret: Unexpected keyword argument"),
        ("shape = [1, 192, 192, 3]", "shape = 192", "inputs.0.shape: Input should be a valid tuple"),
        ('sha256 = "2efcb4f4', 'sha256 = "XYZ', "sha256: String should match pattern"),
        ('file = "face', 'file = "../face', "file: String should match pattern"),
        ('file = "face_landmark.tflite"', 'file = ".."', "file: String should match pattern"),
        ('file = "face_landmark.tflite"', 'file = "known.json"', "file: String should match pattern"),
        ("[licence]", 'pack = "../../home"\n[licence]', "pack: String should match pattern"),
        ("mean = [0.0, 0.0, 0.0]", "mean = [0.0]", "inputs.0: mean and scale of a picture need"),
        ("shape = [1, 192, 192, 3]", "shape = [1, 3, 192, 192]", "inputs.0: the shape of a picture is"),
    ],
)
def test_a_wrong_card_names_the_file_and_the_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ModelError) as caught:
        load_card("mine", write(tmp_path, GOOD.replace(old, new)))
    assert caught.value.message.startswith(f"{tmp_path / 'mine.toml'}: {said}")


def test_a_card_that_is_no_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"mine\.toml is not a TOML file: .*line 1"):
        load_card("mine", write(tmp_path, "name = \n"))


def test_a_card_that_calls_itself_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="calls itself 'yours'"):
        load_card("mine", write(tmp_path, GOOD.replace('"mine"', '"yours"')))
