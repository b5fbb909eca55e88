"""The comparison with insightface, run for real but briefly: no figure of time is judged."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from realtime import config, versus
from realtime.commands.bench import report_versus
from realtime.errors import ConfigError, install_extra
from realtime.types import Size
from tests.faces import face_of

DEMO = config.flag("--input", "input.what", "demo")


def test_what_is_missing_is_told_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versus, "find_spec", lambda name: None if name == "insightface" else find_spec(name))
    with pytest.raises(ConfigError, match="needs insightface") as caught:
        versus.measure(config.load(None, [DEMO]), lambda _: None)
    assert caught.value.hint == install_extra("neural")


def test_both_make_the_same_face_and_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the same stub for a network both put the crop back, and what is left is rounding.

    Masks differ, so only where both are full is compared: theirs is a box that is eroded and blurred, ours the outline
    of the face.
    """
    pytest.importorskip("insightface")
    monkeypatch.setattr(versus, "SCENES", ((Size(640, 360), 150), (Size(640, 360), 240)))
    told: list[str] = []
    figures = versus.measure(config.load(None, [DEMO]), told.append, runs=1)
    assert capfd.readouterr().out == ""
    assert len(told) == len(figures["vs"]) == 2
    for row, (size, face_px) in zip(json.loads(json.dumps(figures))["vs"], versus.SCENES, strict=True):
        assert (row["size"], row["face_px"]) == (str(size), face_px)
        assert {"ours_ms", "theirs_ms", "ratio"} <= row.keys() & row["cpu"].keys()
        assert row["psnr_db"] >= 40
    report_versus(figures)


def test_where_masks_are_full_is_within_the_face(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from engines.cpu import CpuDevice

    ours = versus.Ours(CpuDevice(), versus.write_stub(tmp_path / "stub.onnx"))
    mesh = np.random.default_rng(1).uniform(100, 200, (468, 3)).astype(np.float32)
    face = face_of(mesh)
    face.points5[:] = (125, 130), (175, 130), (150, 160), (130, 185), (170, 185)
    picture = np.full((300, 300, 3), 90, np.uint8)
    full = versus.both_full(ours, versus.Shot(Size(300, 300), 100, picture, face))
    y, x = np.nonzero(full)
    assert 500 < full.sum() < 100 * 120
    assert 100 < x.min() < x.max() < 200
    assert 100 < y.min() < y.max() < 215
