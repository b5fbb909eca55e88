from __future__ import annotations

import pytest

from engines.errors import EngineError, ModelError
from realtime.models import Models


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
