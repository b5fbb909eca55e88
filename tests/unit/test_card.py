from __future__ import annotations

from pathlib import Path

import pytest

from engines.card import FOLDER, load_card, names
from engines.errors import ModelError

GOOD = (FOLDER / "face_landmark.toml").read_text(encoding="utf-8").replace('"face_landmark"', '"mine"', 1)

SCALE = next(line for line in GOOD.splitlines() if line.startswith("scale"))

SIZES = "[sizes]\nleast = [32, 32]\nbest = [64, 64]\nmost = [96, 96]\n"


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


def test_an_unknown_card_says_how_to_see_those_there_are() -> None:
    with pytest.raises(ModelError, match="no model card 'nose'") as caught:
        load_card("nose")
    assert caught.value.hint == f"see which of the {len(names())} you mean: doppelcam models list"


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
        ("mean = [0.0, 0.0, 0.0]", "mean = [0.0, nan, 0.0]", "inputs.0: mean and scale of a picture must be"),
        ("scale = [0.0039", "scale = [0.0, 0.0039", "inputs.0: mean and scale of a picture need"),
        (SCALE, "scale = [0.0, 1.0, 1.0]", "inputs.0: mean and scale of a picture must be"),
        (SCALE, "scale = [inf, 1.0, 1.0]", "inputs.0: mean and scale of a picture must be"),
        (SCALE, "scale = [1e300, 1.0, 1.0]", "inputs.0: mean and scale of a picture must be"),
        (SCALE, "scale = [1e-300, 1.0, 1.0]", "inputs.0: mean and scale of a picture must be"),
        ("shape = [1, 192, 192, 3]", "shape = [1, 0, 192, 3]", "inputs.0: an axis is at least 1, or -1"),
        ("shape = [1, 192, 192, 3]", "shape = [1, -5, 192, 3]", "inputs.0: an axis is at least 1, or -1"),
        ("shape = [1, 192, 192, 3]", "shape = [1, 1000000000, 192, 3]", "inputs.0: a picture of 192x1000000000"),
        ('file = "face_landmark', f'file = "{60 * "a"}', "file: String should have at most"),
        ("[decode]", f"{SIZES.replace('[64, 64]', '[16, 64]')}[decode]", "sizes: of the sizes 32x32 to 96x96"),
        ("[decode]", f"{SIZES.replace('96', '48')}[decode]", "sizes: of the sizes 32x32 to 48x48, best 64x64"),
        ("[decode]", f"{SIZES.replace('96', '9000')}[decode]", "sizes: of the sizes 32x32 to 9000x9000"),
        ("[decode]", f"{SIZES.replace('[32', '[0')}[decode]", "sizes: of the sizes 0x32 to 96x96"),
        ("[decode]", f"{SIZES}worst = [1, 1]\n[decode]", "sizes.worst: Unexpected keyword argument"),
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


def test_a_card_without_inputs_is_refused(tmp_path: Path) -> None:
    head, _, rest = GOOD.partition("[[inputs]]")
    without = head.replace("[licence]", "inputs = []\n[licence]") + "[[outputs]]" + rest.partition("[[outputs]]")[2]
    with pytest.raises(ModelError, match="inputs: Tuple should have at least 1 item"):
        load_card("mine", write(tmp_path, without))


@pytest.mark.parametrize("name", ["a" * 300, "../mine", "", "sub/mine", "\0"])
def test_what_is_no_name_of_a_card_is_told_as_one_that_is_not_there(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "cards"
    folder.mkdir()
    write(tmp_path, GOOD.replace('name = "mine"', 'name = "../mine"'))
    with pytest.raises(ModelError, match="no model card"):
        load_card(name, folder)


def test_a_folder_with_the_name_of_a_card_is_none(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").mkdir()
    assert names(tmp_path) == ()


def test_a_card_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    write(tmp_path, GOOD)
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(ModelError, match=r"mine\.toml cannot be read: Permission denied"):
        load_card("mine", tmp_path)


def test_a_card_that_is_nested_without_end_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"mine\.toml is not a TOML file"):
        load_card("mine", write(tmp_path, f"name = {'[' * 5000}"))
