"""What a file is taken for, and which files are never taken."""

from __future__ import annotations

import os
import pickle
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from engines.card import Copy, load_card
from engines.errors import ModelError
from engines.folders import EMBEDDED
from engines.store.recognise import recognise
from tests.own_models import write_card, write_onnx


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    return folder


def test_a_file_is_known_by_its_hash_whatever_its_name(tmp_path: Path, mine: Path) -> None:
    path = write_onnx(tmp_path / "renamed.onnx")
    write_card(mine, "one", path.read_bytes())
    write_card(mine, "two")  # the same tensors
    found = recognise(path, [load_card("two"), load_card("one")])
    assert found.card.name == "one"
    assert found.why == "its sha256 is the one on the card"
    assert found.sha256 == sha256(path.read_bytes()).hexdigest()


def test_a_copy_is_known_too_and_what_it_is_is_told(tmp_path: Path, mine: Path) -> None:
    path = write_onnx(tmp_path / "a.onnx")
    write_card(mine, "one", b"other")
    copy = Copy(0, sha256(path.read_bytes()).hexdigest(), "half precision")
    card = replace(load_card("one"), copies=(copy,))
    assert recognise(path, [card]).why == "its sha256 is that of a copy on the card (half precision)"


def test_one_file_on_two_cards_goes_by_its_name_or_is_asked_for(tmp_path: Path, mine: Path) -> None:
    path = write_onnx(tmp_path / "two.onnx")
    for name in ("one", "two"):
        write_card(mine, name, path.read_bytes())
    cards = [load_card("one"), load_card("two")]
    assert recognise(path, cards).card.name == "two"
    with pytest.raises(ModelError, match="could be any of: one, two"):
        recognise(path.rename(tmp_path / "three.onnx"), cards)


def test_a_file_is_known_by_its_tensors(tmp_path: Path, mine: Path) -> None:
    path = write_onnx(tmp_path / "a.onnx", side=16)
    write_card(mine, "small", side=8)
    write_card(mine, "large", side=16)
    write_card(mine, "other_name", side=16, input_name="picture")
    found = recognise(path, [load_card(name) for name in ("small", "large", "other_name")])
    assert found.card.name == "large"
    assert "tensors" in found.why


def test_a_free_axis_of_the_card_takes_any_size(tmp_path: Path, mine: Path) -> None:
    write_card(mine, "free", side=-1)
    assert recognise(write_onnx(tmp_path / "a.onnx", side=24), [load_card("free")]).card.name == "free"


def test_several_models_with_its_tensors_are_listed(tmp_path: Path, mine: Path) -> None:
    for name in ("one", "two"):
        write_card(mine, name, b"another file")
    with pytest.raises(ModelError, match="could be any of: one, two") as caught:
        recognise(write_onnx(tmp_path / "a.onnx"), [load_card("one"), load_card("two")])
    assert caught.value.hint == "say which: --as one"


def test_of_several_with_its_tensors_the_one_whose_file_has_its_name_is_taken(tmp_path: Path, mine: Path) -> None:
    for name in ("one", "two"):
        write_card(mine, name, b"another file")
    found = recognise(write_onnx(tmp_path / "two.onnx"), [load_card("one"), load_card("two")])
    assert found.card.name == "two"
    assert found.why.endswith("its sha256 is not on it, and it has its file's name")


@pytest.mark.parametrize(
    ("file", "order"),
    [
        ("Swap_256-fp16 (1).onnx", "swap_256_fp16, swap_256, alpha"),
        ("model.onnx", "swap_256, alpha, swap_256_fp16"),  # no name is near: the nearest size, unknown ones last
    ],
)
def test_the_likeliest_comes_first(tmp_path: Path, mine: Path, file: str, order: str) -> None:
    path = write_onnx(tmp_path / file)
    size = path.stat().st_size
    write_card(mine, "swap_256", bytes(size + 1))
    write_card(mine, "swap_256_fp16")
    write_card(mine, "alpha", bytes(size + 1000))
    with pytest.raises(ModelError, match=f"could be any of: {order};") as caught:
        recognise(path, [load_card(name) for name in ("alpha", "swap_256", "swap_256_fp16")])
    assert caught.value.hint == f"say which: --as {order.split(',', maxsplit=1)[0]}"


def test_a_file_that_fits_nothing_says_what_it_has(tmp_path: Path, mine: Path) -> None:
    write_card(mine, "one")
    write_card(mine, "two")
    path = write_onnx(tmp_path / "a.onnx", side=5, name="photo")
    with pytest.raises(ModelError, match=r"fits no card; it has inputs photo float32 \[1, 3, 5, 5\]; outputs out"):
        recognise(path, [load_card("one"), load_card("two")])


@pytest.mark.parametrize(
    ("side", "name", "said"),
    [
        (16, "in", r"'in' is float32 \(1, 3, 8, 8\), the file has float32 \(1, 3, 16, 16\)"),
        (8, "x", "the file has only x"),
    ],
)
def test_the_wrong_file_for_a_card_says_what_is_different(
    tmp_path: Path, mine: Path, side: int, name: str, said: str
) -> None:
    write_card(mine, "one")
    with pytest.raises(ModelError, match=f"it is not one: .*{said}"):
        recognise(write_onnx(tmp_path / "a.onnx", side=side, name=name), [load_card("one")])


def test_an_input_that_the_card_does_not_feed_is_told(tmp_path: Path, mine: Path) -> None:
    write_card(mine, "one")
    with pytest.raises(ModelError, match="the card has no input spare"):
        recognise(write_onnx(tmp_path / "a.onnx", spare="spare"), [load_card("one")])


def test_a_tflite_file_is_read_by_its_own_runtime(tmp_path: Path) -> None:
    card = load_card("face_landmark")
    path = tmp_path / "changed.tflite"
    path.write_bytes((EMBEDDED / card.file).read_bytes() + b"\0")  # the same tensors, another hash
    found = recognise(path, [load_card("face_detection_short_range"), card])
    assert found.card == card
    assert "tensors" in found.why


def test_an_onnx_file_is_no_candidate_for_a_card_of_another_runtime(tmp_path: Path, mine: Path) -> None:
    write_card(mine, "one")
    card = replace(load_card("one"), runtimes=("litert",))
    with pytest.raises(ModelError, match="served by litert, the file needs onnxrt"):
        recognise(write_onnx(tmp_path / "a.onnx"), [card])


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("exploded"),))


@pytest.mark.parametrize("suffix", [".pth", ".onnx"])
def test_a_pickle_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"swap{suffix}"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError, match="can run any code") as caught:
        recognise(path, [])
    assert "ONNX" in caught.value.hint
    assert not Path("exploded").exists()


@pytest.mark.parametrize("name", ["a.pt", "a.ckpt", "a.bin", "A.PTH"])
def test_a_file_with_the_name_of_a_pickle_is_not_taken(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"whatever")
    with pytest.raises(ModelError, match="PyTorch"):
        recognise(path, [])


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "buffalo_l.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.onnx", b"x")
    with pytest.raises(ModelError, match="archive") as caught:
        recognise(path, [])
    assert "unpack" in caught.value.hint


@pytest.mark.parametrize(
    "data", [b"", b"not a model at all", b"\x08", bytes(1000)], ids=["empty", "text", "a", "zeros"]
)
def test_what_is_no_model_is_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"a\.onnx"):
        recognise(path, [])


def test_half_a_model_is_told(tmp_path: Path) -> None:
    whole = write_onnx(tmp_path / "a.onnx").read_bytes()
    path = tmp_path / "half.onnx"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="only half of one"):
        recognise(path, [])


def test_half_a_tflite_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "half.tflite"
    path.write_bytes((EMBEDDED / "face_landmark.tflite").read_bytes()[:1000])
    with pytest.raises(ModelError, match="LiteRT cannot load"):
        recognise(path, [])


def test_operators_that_the_runtime_does_not_have_are_told(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "a.onnx", operator="Secret", domain="com.somebody")
    with pytest.raises(ModelError, match=r"operators of its own, which ONNX Runtime does not have: .*Secret") as caught:
        recognise(path, [])
    assert "standard operators" in caught.value.hint


def test_weights_in_a_second_file_are_told(tmp_path: Path) -> None:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    shape = [1, 3, 8, 8]
    weights = numpy_helper.from_array(np.ones(shape, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Add", ["in", "w"], ["out"])],
        "g",
        [helper.make_tensor_value_info("in", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
        [weights],
    )
    path = tmp_path / "a.onnx"
    onnx.save(
        helper.make_model(graph, ir_version=8),
        str(path),
        save_as_external_data=True,
        location="a.data",
        size_threshold=0,
    )
    with pytest.raises(ModelError, match="keeps its weights in another file"):
        recognise(path, [])


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        recognise(tmp_path / "none.onnx", [])


def test_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no file"):
        recognise(tmp_path, [])


def test_what_would_be_read_without_end_is_told(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    with pytest.raises(ModelError, match="is no file"):
        recognise(pipe, [])
