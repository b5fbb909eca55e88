"""Every line of the table of sources keeps the contract; a new kind is tested by adding its line."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from realtime.errors import ConfigError, SourceError
from realtime.sources import SOURCES, Source, SourceSpec, SourceWish, open_source
from tests.clips import make_clip, numbered

NEEDS_NO_TARGET = frozenset({"auto", "demo"})

# What a kind can open on any machine; kinds that need a device are tested with it in their own files.
OPENABLE = ("demo", "image", "video")


@pytest.fixture
def targets(tmp_path: Path) -> dict[str, str]:
    import cv2

    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(3)))
    cv2.imwrite(str(tmp_path / "a.png"), numbered(1))
    return {"demo": "", "image": str(tmp_path / "a.png"), "video": str(clip)}


@pytest.mark.parametrize("kind", SOURCES)
def test_it_imports_and_has_the_shape_of_a_source(kind: str) -> None:
    module, _, name = SOURCES[kind].partition(":")
    made = getattr(importlib.import_module(module), name)
    assert list(inspect.signature(made).parameters) == ["target", "wish"]
    assert isinstance(inspect.getattr_static(made, "info"), property)
    for method in ("read", "close"):
        expected = inspect.signature(getattr(Source, method)).parameters
        assert list(inspect.signature(getattr(made, method)).parameters) == list(expected)
        assert getattr(made, method).__doc__


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind not in NEEDS_NO_TARGET])
def test_a_bad_target_is_one_clear_error(kind: str, tmp_path: Path) -> None:
    with pytest.raises((SourceError, ConfigError)) as caught:
        open_source(SourceSpec(kind, str(tmp_path / "not there")), SourceWish())
    assert caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("kind", OPENABLE)
def test_an_open_source_keeps_its_promises(kind: str, targets: dict[str, str]) -> None:
    source = open_source(SourceSpec(kind, targets[kind]), SourceWish())
    info = source.info
    first, second = source.read(), source.read()
    assert info is source.info
    assert info.name
    assert all(info.facts)
    assert first is not None
    assert second is not None
    assert first.size == info.size
    assert first.seq == 0
    assert first.seq < second.seq
    assert first.t_capture_s < second.t_capture_s
    assert first.pixels.flags.c_contiguous
    assert first.pixels.flags.writeable
    assert first.pixels.base is not second.pixels.base or first.pixels.base is None
    source.close()
    source.close()
    with pytest.raises(SourceError) as caught:
        source.read()
    assert not caught.value.fatal


def test_the_table_costs_nothing_until_a_source_is_opened() -> None:
    code = (
        "import sys, realtime.sources; print(*{'av', 'mss', 'cv2', 'PIL', 'cv2_enumerate_cameras'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


def test_the_parts_of_the_core_library_that_sources_lean_on_are_there() -> None:
    # A wheel of PyAV without these would fail only at a user's desk.
    import av.format

    assert {"matroska", "mp4", "mpegts", "rtsp", "mpjpeg"} <= {
        part for name in av.format.formats_available for part in name.split(",")
    }
