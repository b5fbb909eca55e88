"""Every line of the table of sinks leads to a class that keeps the contract; a new sink is picked up from the table."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from realtime.errors import SinkError
from realtime.sinks import AUTO, RECORDING_SUFFIXES, SINKS, Sink, SinkInfo, SinkSpec, SinkWish, open_sink
from realtime.types import Frame, Size

NOTES = ("why the better one was not taken",)
WISH = SinkWish(Size(64, 48), fps=30, notes=NOTES)

BAD_TARGETS = {
    "virtualcam": "/dev/video-that-is-not-there",
    "recording": "/folder/that/is/not/there/out.mp4",
}
"""Kinds that take a target, and one that cannot be opened."""


def sink_class(kind: str) -> Any:
    module, _, name = SINKS[kind].partition(":")
    return getattr(import_module(module), name)


@pytest.fixture(params=["null", "recording"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    """Each sink that needs neither device nor display; the others are opened in tests/e2e."""
    target = str(tmp_path / "out.mp4") if request.param == "recording" else ""
    return open_sink(SinkSpec(request.param, target), WISH)


@pytest.mark.parametrize("kind", SINKS)
def test_every_entry_has_the_contract_s_shape(kind: str) -> None:
    found = sink_class(kind)
    assert list(inspect.signature(found).parameters) == ["target", "wish"]
    for name in ("info", "write", "close"):
        assert inspect.getdoc(getattr(found, name)), f"{found.__name__}.{name} says nothing"
    assert isinstance(inspect.getattr_static(found, "info"), property)
    assert list(inspect.signature(found.write).parameters) == ["self", "frame"]


@pytest.mark.parametrize("kind", BAD_TARGETS)
def test_a_bad_target_is_told_with_a_hint(kind: str) -> None:
    with pytest.raises(SinkError) as caught:
        open_sink(SinkSpec(kind, BAD_TARGETS[kind]), WISH)
    assert BAD_TARGETS[kind].rpartition("/")[0] in caught.value.message
    assert caught.value.hint


def test_auto_and_file_names_lead_into_the_table() -> None:
    assert set(AUTO) <= set(SINKS)
    assert all(suffix.startswith(".") for suffix in RECORDING_SUFFIXES)


def test_a_sink_keeps_its_word(opened: Sink) -> None:
    info = opened.info
    assert isinstance(info, SinkInfo)
    assert info.name
    assert info.size == WISH.size
    assert info.fps >= 0
    assert info.facts[: len(NOTES)] == NOTES
    pixels = np.full((48, 64, 3), 90, np.uint8)
    pixels.setflags(write=False)  # a sink that paints into the picture would raise
    for seq in range(3):
        opened.write(Frame(seq, seq / 30, pixels))
    assert opened.info is info
    opened.close()
    opened.close()


def test_a_file_per_kind_and_nothing_opened_by_looking_at_the_table() -> None:
    folder = Path(inspect.getfile(open_sink)).parent
    for entry in SINKS.values():
        assert (folder / f"{entry.partition(':')[0].rpartition('.')[2]}.py").is_file()
