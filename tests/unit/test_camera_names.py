"""Which camera is meant, how it is found again, and who may use it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from realtime.errors import SourceError
from realtime.sources import SourceSpec, SourceWish
from realtime.sources.camera import CameraSource
from realtime.sources.cameras import CameraInfo, access_trouble, find_camera, holders, lasting_target, list_cameras
from tests.scripted_camera import Device, FakeCapture, plug_in

Plug = Callable[..., list[FakeCapture]]


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Plug:
    return partial(plug_in, monkeypatch)


def test_names_numbers_and_what_is_near(plugged: Plug) -> None:
    plugged(Device(), Device(2, "Logitech C920"), Device(4, "Logitech BRIO"))
    found = list_cameras()
    assert [entry.index for entry in found] == [0, 2, 4]
    for target, index in (("", 0), ("2", 2), ("c920", 2), ("logitech brio", 4), ("/dev/video4", 4)):
        assert find_camera(target, found).index == index
    with pytest.raises(SourceError, match="2 cameras are called 'logitech'") as caught:
        find_camera("logitech", found)
    assert "2: Logitech C920" in caught.value.hint
    assert "4: Logitech BRIO" in caught.value.hint
    with pytest.raises(SourceError, match="not there") as caught:
        find_camera("Acme Camm", found)
    assert "did you mean Acme Cam?" in caught.value.hint
    assert not caught.value.fatal
    with pytest.raises(SourceError, match="no camera was found"):
        find_camera("", [])


def test_a_whole_name_wins_over_parts_of_longer_names(plugged: Plug) -> None:
    plugged(Device(0, "Cam"), Device(1, "Cam Pro"))
    assert find_camera("cam", list_cameras()).index == 0


def test_a_camera_is_found_again_by_what_stays_when_it_is_unplugged(tmp_path: Path, plugged: Plug) -> None:
    plugged(Device(0, "Twin"), Device(1, "Twin"), Device(2, "Single"))
    twin, other, single = list_cameras()
    everyone = [twin, other, single]
    assert lasting_target(single, everyone, tmp_path) == "Single"
    assert lasting_target(twin, everyone, tmp_path) == "/dev/video0"
    link = tmp_path / "usb-Twin_SN1234-video-index0"
    link.symlink_to("/dev/video0")
    if sys.platform == "linux":
        assert lasting_target(twin, everyone, tmp_path) == str(link)
    source = CameraSource("2", SourceWish())
    assert source.info.reopen == SourceSpec("camera", "Single")
    source.close()


def test_a_node_that_may_not_be_opened_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = access_trouble(tmp_path / "video9")
    assert missing is not None
    assert not missing.fatal
    (tmp_path / "video0").write_bytes(b"")
    plain = access_trouble(tmp_path / "video0")
    assert plain is not None
    assert "not a video device" in plain.message
    assert access_trouble(Path(os.devnull)) is None
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    denied = access_trouble(Path(os.devnull))
    assert denied is not None
    assert denied.fatal
    assert "usermod -aG" in denied.hint


def test_who_holds_a_node_is_read_from_proc(tmp_path: Path) -> None:
    for number, name, target in (("4711", "zoom", "/dev/video0"), ("50", "cat", "/dev/null")):
        (tmp_path / number / "fd").mkdir(parents=True)
        (tmp_path / number / "comm").write_text(name + "\n")
        (tmp_path / number / "fd" / "3").symlink_to(target)
    (tmp_path / "77").mkdir()  # ended while we looked
    assert holders(Path("/dev/video0"), tmp_path) == ["zoom (4711)"]


def test_a_machine_without_cameras_lists_none() -> None:
    assert all(isinstance(entry, CameraInfo) for entry in list_cameras())
