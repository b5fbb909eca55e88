from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engines.errors import EngineError, ModelError
from realtime.models import Models
from tests import facenets, helpernets
from tests.cards import put, write_card


def test_a_model_is_opened_once_and_closed_with_the_run() -> None:
    with Models() as models:
        engine = models.open("face_landmark")
        assert models.open("face_landmark") is engine
        assert models.facts == (("face_landmark", engine.runtime),)
    with pytest.raises(EngineError, match="closed"):
        engine.run()


def test_a_runtime_that_cannot_serve_a_model_leaves_it_to_the_first_of_its_card() -> None:
    with Models("onnxrt") as models:
        assert models.open("face_landmark").runtime.startswith("litert ")


def test_an_unknown_model_is_refused_with_those_that_exist() -> None:
    with Models() as models, pytest.raises(ModelError, match="no model card 'nobody'"):
        models.open("nobody")


def test_a_model_with_a_free_size_is_refused_where_crops_are_of_one_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    put(tmp_path, facenets.dfm_swapper())
    with Models() as models:
        card = models.card("test_dfm")
        free = replace(card, inputs=(replace(card.inputs[0], shape=(1, -1, -1, 3)),))
        write_card(tmp_path, free)
        with pytest.raises(ModelError, match=r"test_dfm.*'in_face:0' has an axis of any size") as caught:
            models.open("test_dfm")
    assert "correct" in caught.value.hint


def test_any_number_of_pictures_is_no_free_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    put(tmp_path, facenets.latent_swapper(batch=-1))
    with Models() as models:
        assert models.open("test_inswapper").inputs[0].shape[0] == -1


def test_a_free_number_where_no_picture_is_meant_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    put(tmp_path, helpernets.enhancer(weight=True))
    with Models() as models:
        card = models.card("test_enhancer")
        write_card(tmp_path, replace(card, inputs=(card.inputs[0], replace(card.inputs[1], shape=(-1,)))))
        with pytest.raises(ModelError, match="'weight' has an axis of any size"):
            models.open("test_enhancer")


def test_a_card_that_states_no_output_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    put(tmp_path, helpernets.converter())
    with Models() as models:
        write_card(tmp_path, replace(models.card("test_crossface"), outputs=()))
        with pytest.raises(ModelError, match="'test_crossface' states no output"):
            models.open("test_crossface")
