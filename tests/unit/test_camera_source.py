"""Cameras that refuse, lie, go black, tear, freeze and vanish, behind a scripted ``cv2.VideoCapture``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from realtime.errors import SourceError
from realtime.sources import SourceInfo, SourceSpec, SourceWish, auto, camera, open_source
from realtime.sources.camera import PROBE_FRAMES, CameraSource
from realtime.types import U8, Size
from tests.scripted_camera import BRIGHT, Device, FakeCapture, plug_in

Plug = Callable[..., list[FakeCapture]]


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Plug:
    return partial(plug_in, monkeypatch)


def test_a_camera_that_takes_every_wish(plugged: Plug) -> None:
    opened = plugged(Device())
    source = CameraSource("0", SourceWish(size=Size(1280, 720), fps=30))
    assert source.info.size == Size(1280, 720)
    assert source.info.fps == 30
    assert source.info.live
    assert source.info.facts == ("MJPG 1280x720 at 30 frames/s claimed, through V4L2",)
    first, second = source.read(), source.read()
    assert (first.seq, second.seq) == (0, 1)
    assert first.t_capture_s <= second.t_capture_s
    assert first.size == Size(1280, 720)
    assert first.pixels is not second.pixels
    source.close()
    source.close()
    assert opened[0].released == 1


def test_format_is_asked_before_size_before_rate(plugged: Plug) -> None:
    opened = plugged(Device())
    CameraSource("0", SourceWish(size=Size(1280, 720), fps=30)).close()
    order = [cv2.CAP_PROP_FOURCC, cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FPS]
    assert opened[0].asked == order


def test_each_refused_wish_is_said_although_set_said_yes(plugged: Plug) -> None:
    plugged(Device(formats=("YUYV",), sizes=(Size(640, 480),)))
    source = CameraSource("0", SourceWish(size=Size(1920, 1080), fps=60, fourcc="mjpg"))
    assert source.info.size == Size(640, 480)
    assert set(source.info.facts[1:]) == {
        "asked for 1920x1080, the camera gives 640x480",
        "asked for 60 frames/s, the camera claims 30",
        "asked for MJPG, the camera gives YUYV",
    }
    source.close()


@pytest.mark.parametrize(
    ("wish", "first"),
    [
        (SourceWish(), "YUYV"),
        (SourceWish(size=Size(640, 480), fps=30), "YUYV"),
        (SourceWish(size=Size(640, 480), fps=60), "MJPG"),
        (SourceWish(size=Size(1280, 720)), "MJPG"),
        (SourceWish(size=Size(1280, 720), fourcc="raw"), "YUYV"),
        (SourceWish(fourcc="mjpg"), "MJPG"),
    ],
)
def test_compressed_where_raw_would_not_fit_the_cable(plugged: Plug, wish: SourceWish, first: str) -> None:
    opened = plugged(Device(formats=("YUYV", "MJPG") if first == "MJPG" else ("MJPG", "YUYV")))
    CameraSource("0", wish).close()
    assert opened[0].fourcc == first
    assert len(opened) == 1


def test_a_format_that_stays_black_gives_way_to_the_next(plugged: Plug) -> None:
    opened = plugged(Device(show=lambda fourcc, _n: 3 if fourcc == "MJPG" else BRIGHT))
    source = CameraSource("0", SourceWish(size=Size(1280, 720)))
    assert [capture.fourcc for capture in opened] == ["MJPG", "YUYV"]
    assert [capture.released for capture in opened] == [1, 0]
    assert source.read().pixels.max() == BRIGHT
    source.close()


def test_a_format_that_gives_nothing_gives_way_to_the_next(plugged: Plug) -> None:
    opened = plugged(Device(show=lambda fourcc, _n: None if fourcc == "MJPG" else BRIGHT))
    CameraSource("0", SourceWish(size=Size(1280, 720))).close()
    assert [capture.fourcc for capture in opened] == ["MJPG", "YUYV"]


def test_exposure_may_take_its_time(plugged: Plug) -> None:
    opened = plugged(Device(show=lambda _fourcc, number: BRIGHT if number > 20 else 0))
    CameraSource("0", SourceWish()).close()
    assert len(opened) == 1


def test_a_covered_lens_is_an_error_that_says_so(plugged: Plug) -> None:
    opened = plugged(Device(show=lambda _fourcc, _n: 2))
    with pytest.raises(SourceError, match="only black pictures") as caught:
        CameraSource("0", SourceWish())
    assert "cover" in caught.value.hint
    assert not caught.value.fatal
    assert all(capture.released == 1 for capture in opened)
    assert all(capture.grabbed <= PROBE_FRAMES for capture in opened)


def test_a_busy_camera_names_who_holds_it(plugged: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    plugged(Device(opens=False))
    with pytest.raises(SourceError, match="cannot be opened") as caught:
        CameraSource("0", SourceWish())
    assert "close every program" in caught.value.hint
    monkeypatch.setattr(camera, "holders", lambda _node: ["zoom (4711)"])
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(SourceError, match=r"in use by zoom \(4711\)") as caught:
        CameraSource("0", SourceWish())
    assert not caught.value.fatal


def test_unplugged_while_running(plugged: Plug) -> None:
    plugged(Device(show=lambda _fourcc, number: BRIGHT if number < 3 else None))
    source = CameraSource("0", SourceWish())
    source.read()
    source.read()
    with pytest.raises(SourceError, match="stopped giving pictures") as caught:
        source.read()
    assert not caught.value.fatal
    source.close()


def test_a_torn_picture_is_skipped_and_counted_many_are_an_error(plugged: Plug) -> None:
    plugged(Device(show=lambda _fourcc, number: -1 if number in {1, 2} or number > 4 else BRIGHT))
    source = CameraSource("0", SourceWish())
    assert source.read().seq == 2
    assert source.read().seq == 3
    with pytest.raises(SourceError, match="stopped"):
        source.read()
    source.close()


def test_grey_and_changing_pictures_come_as_bgr(plugged: Plug) -> None:
    shapes: list[U8] = [np.full(shape, BRIGHT, np.uint8) for shape in ((48, 64), (48, 64, 1), (24, 32, 3))]
    plugged(Device(show=lambda _fourcc, number: shapes[number % 3]))
    source = CameraSource("0", SourceWish())
    assert [source.read().pixels.shape for _ in range(3)] == [(48, 64, 3), (24, 32, 3), (48, 64, 3)]
    source.close()


def test_closing_from_another_thread_leaves_the_release_to_the_reader(plugged: Plug) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def frozen(_fourcc: str, number: int) -> int:
        if number:
            inside.set()
            go_on.wait(10)
        return BRIGHT

    opened = plugged(Device(show=frozen))
    source = CameraSource("0", SourceWish())
    errors: list[SourceError] = []

    def reader() -> None:
        try:
            source.read()
        except SourceError as error:
            errors.append(error)

    thread = threading.Thread(target=reader)
    thread.start()
    assert inside.wait(10)
    source.close()  # returns although the driver hangs
    assert opened[0].released == 0
    go_on.set()
    thread.join(10)
    assert opened[0].released == 1
    assert [error.fatal for error in errors] == [False]


def test_windows_opens_by_the_way_it_listed_with_all_wishes_at_once(
    plugged: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    opened = plugged(
        Device(0, "Other", cv2.CAP_DSHOW),
        Device(1, "Wanted", cv2.CAP_DSHOW, show=lambda _fourcc, _n: 0),
        Device(0, "Wanted", cv2.CAP_MSMF),
        Device(1, "Other", cv2.CAP_MSMF),
    )
    source = CameraSource("wanted", SourceWish(size=Size(1280, 720), fps=30))
    assert [(capture.device.name, capture.device.backend) for capture in opened] == [
        *[("Wanted", cv2.CAP_DSHOW)] * 3,
        ("Wanted", cv2.CAP_MSMF),
    ]
    assert cv2.CAP_PROP_FOURCC in opened[0].asked
    assert source.read().pixels.max() == BRIGHT
    source.close()


def test_auto_takes_the_first_camera_that_works_and_sticks_to_it(plugged: Plug) -> None:
    plugged(Device(0, "Infrared", show=lambda _fourcc, _n: 0), Device(2, "Webcam"))
    source = open_source(SourceSpec("auto"), SourceWish())
    assert source.info.facts[0] == "input auto: Webcam"
    assert source.info.reopen == SourceSpec("camera", "Webcam")
    assert source.read() is not None
    source.close()


def test_auto_without_a_camera_shows_the_demo_and_says_why(plugged: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    plugged(Device(0, "Infrared", show=lambda _fourcc, _n: 0))
    still = SourceInfo("demo", Size(8, 8), 30, live=True, facts=("built in",))
    demo = SimpleNamespace(info=still, read=lambda: None, close=lambda: None)
    monkeypatch.setattr(
        auto, "open_source", lambda spec, wish: demo if spec.kind == "demo" else open_source(spec, wish)
    )
    source = open_source(SourceSpec("auto"), SourceWish())
    notice, *rest = source.info.facts
    assert "no working camera" in notice
    assert "only black" in notice
    assert rest == ["built in"]
    assert source.info.reopen == SourceSpec("demo")
