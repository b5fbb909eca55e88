"""The virtual camera through the unmodified pyvirtualcam into a device that answers V4L2, and every fault of it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvirtualcam

from realtime.errors import SinkError
from realtime.sinks import SinkInfo, SinkMissingError, SinkWish
from realtime.types import U8, Frame, Size
from tests.fuse_v4l2 import FakeVideoDevice, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "FUSE works")

SIZE = Size(320, 240)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[FakeVideoDevice]:
    try:
        mounted = FakeVideoDevice(tmp_path).__enter__()
    except RuntimeError as error:
        pytest.skip(f"no FUSE device can be mounted here: {error}")
    yield mounted
    mounted.__exit__(None, None, None)


def camera(device: FakeVideoDevice, size: Size = SIZE, fps: float = 30) -> Any:
    from realtime.sinks.virtualcam import VirtualCamera

    return VirtualCamera(str(device.path), SinkWish(size, fps))


def smooth(size: Size) -> U8:
    """Slow colour ramps, which lose nothing at half colour resolution."""
    y, x = np.mgrid[0 : size.h, 0 : size.w].astype(np.float32)
    ramps = (40 + 150 * x / size.w, 60 + 130 * y / size.h, 200 - 120 * x / size.w)
    return np.stack(ramps, axis=-1).astype(np.uint8)


def frame(size: Size = SIZE, seq: int = 0) -> Frame:
    pixels = smooth(size)
    pixels.setflags(write=False)  # a card that is shown again and again is read-only
    return Frame(seq, 0.0, pixels)


def test_pictures_arrive_with_the_right_pixels_each_once(device: FakeVideoDevice) -> None:
    sink = camera(device, Size(1280, 720))
    sent = frame(Size(1280, 720))
    before = sent.pixels.copy()
    for _ in range(70):  # past the beat at which the format is looked at again
        sink.write(sent)
    difference = np.abs(device.last_bgr().astype(int) - before)
    sink.close()
    assert device.state["frames"] == 70
    assert device.state["pending"] == 0
    assert difference.max() <= 4
    assert difference.mean() <= 1
    assert np.array_equal(sent.pixels, before)


def test_the_info_is_what_the_device_has(device: FakeVideoDevice) -> None:
    sink = camera(device, fps=0)
    info: SinkInfo = sink.info
    sink.close()
    assert (info.size, info.fps, info.live, info.main_thread) == (SIZE, 30.0, True, False)
    assert "Fake camera" in info.name
    assert str(device.path) in info.name


@pytest.mark.parametrize(("asked", "kept"), [(60.0, 30.0), (24.0, 24.0)])
def test_the_cadence_is_at_most_thirty(device: FakeVideoDevice, asked: float, kept: float) -> None:
    sink = camera(device, fps=asked)
    sink.close()
    assert sink.info.fps == kept


def test_an_odd_size_becomes_even(device: FakeVideoDevice) -> None:
    sink = camera(device, Size(641, 361))
    sink.write(frame(sink.info.size))
    sink.close()
    assert sink.info.size == Size(640, 360)
    assert device.state["size"] == [640, 360]
    assert device.state["frames"] == 1


def test_it_opens_again_after_close(device: FakeVideoDevice) -> None:
    for size in (SIZE, Size(640, 480), SIZE):
        sink = camera(device, size)
        sink.write(frame(size))
        sink.close()
        sink.close()
    assert device.state["frames"] == 3


def test_a_second_writer_in_this_program_is_told_and_does_no_harm(device: FakeVideoDevice) -> None:
    first = camera(device)
    with pytest.raises(SinkError, match="is not free"):
        camera(device)
    first.write(frame())
    first.close()
    assert device.state["frames"] == 1


OPENING_FAULTS = [
    ({"answer": [160, 120]}, "160x120 YU12 instead of 320x240", "--size 160x120"),
    ({"s_fmt": errno.EBUSY}, "is not free", "fuser -v"),
    ({"s_fmt": errno.EINVAL}, "could not be configured", "modprobe v4l2loopback exclusive_caps=1"),
    ({"open": errno.EBUSY}, "is not free", "stop that program"),
    ({"open": errno.EACCES}, "may not open", "usermod -aG video"),
    ({"open": errno.EIO}, "cannot be opened", "0.15 or newer"),
    ({"gone": True}, "there is no device", 'card_label="doppelcam" video_nr=10'),
    ({"querycap": errno.ENOTTY}, "is not a video device", "0.15 or newer"),
    ({"capabilities": 1}, "is not free", "0.15"),
    ({"driver": "uvcvideo", "capabilities": 1}, "is no virtual camera", "v4l2loopback"),
    ({"driver": "bcm2835-codec"}, "is no virtual camera", "v4l2loopback"),
    ({"g_fmt": errno.ENODEV}, "went away", "0.15 or newer"),
]


@pytest.mark.parametrize(("fault", "message", "hint"), OPENING_FAULTS, ids=lambda value: str(value)[:40])
def test_a_device_that_cannot_be_used_is_told_and_can_be_used_later(
    device: FakeVideoDevice, fault: dict[str, Any], message: str, hint: str
) -> None:
    device.inject(**fault)
    with pytest.raises(SinkError, match=message) as caught:
        camera(device)
    assert not isinstance(caught.value, SinkMissingError)  # it was named, so auto must not pass it over
    assert hint in caught.value.hint
    device.inject()
    sink = camera(device)
    sink.write(frame())
    sink.close()
    assert device.state["frames"] == 1


WRITING_FAULTS = [
    ({"write": errno.EINVAL}, "did not take the whole picture"),
    ({"write": errno.EIO}, "did not take the whole picture"),
    ({"short": 0}, "did not take the whole picture"),
    ({"short": 1000}, "1000 of 115200 bytes"),
    ({"gone": True}, "went away"),
]


@pytest.mark.parametrize(("fault", "message"), WRITING_FAULTS, ids=lambda value: str(value)[:40])
def test_a_picture_that_was_not_taken_is_noticed_at_once(
    device: FakeVideoDevice, fault: dict[str, Any], message: str
) -> None:
    sink = camera(device)
    sink.write(frame())
    device.inject(**fault)
    with pytest.raises(SinkError, match=message) as caught:
        sink.write(frame())
    assert not caught.value.fatal  # the loop may open it again
    sink.close()
    device.inject()
    again = camera(device)
    again.write(frame())
    again.close()
    assert device.state["frames"] == 2


@pytest.mark.parametrize("fault", [{"write": errno.EINVAL}, {"short": 1000}, {"answer": [160, 120]}], ids=str)
def test_pyvirtualcam_alone_hides_these_faults(device: FakeVideoDevice, fault: dict[str, Any]) -> None:
    """Why the checks exist. When this turns red, pyvirtualcam has learned to speak and a check of ours can go."""
    device.inject(**fault)
    plain = pyvirtualcam.Camera(320, 240, 30, fmt=pyvirtualcam.PixelFormat.BGR, device=str(device.path))
    plain.send(smooth(SIZE))
    plain.close()


def test_another_program_that_changes_the_format_is_noticed_within_two_seconds(device: FakeVideoDevice) -> None:
    sink = camera(device)
    sink.write(frame())
    device.inject(shows=[160, 120])
    for _ in range(58):
        sink.write(frame())
    with pytest.raises(SinkError, match="160x120 YU12 instead of 320x240"):
        sink.write(frame())
    sink.close()


def test_a_reader_s_side_is_asked_when_the_writer_s_is_hidden(device: FakeVideoDevice) -> None:
    sink = camera(device)
    device.inject(hidden=True)  # as v4l2loopback with exclusive_caps=1 does for every opener but the writer
    for _ in range(61):
        sink.write(frame())
    sink.close()
    assert device.state["frames"] == 61


def test_a_plain_file_is_no_device(tmp_path: Path) -> None:
    from realtime.sinks.virtualcam import VirtualCamera

    path = tmp_path / "video9"
    path.write_bytes(b"")
    with pytest.raises(SinkError, match="is not a video device"):
        VirtualCamera(str(path), SinkWish(SIZE))
    assert path.read_bytes() == b""


def test_writing_after_close_is_told(device: FakeVideoDevice) -> None:
    sink = camera(device)
    sink.close()
    with pytest.raises(SinkError, match="closed"):
        sink.write(frame())


def test_the_first_free_device_is_found(device: FakeVideoDevice, tmp_path: Path) -> None:
    from realtime.sinks import v4l2

    nodes = [tmp_path / "video7", device.path]
    assert v4l2.find_output("", nodes)[0] == str(device.path)
    device.inject(capabilities=1)
    with pytest.raises(SinkError, match="is not free"):
        v4l2.find_output("", nodes)
    device.inject(driver="uvcvideo")
    with pytest.raises(SinkMissingError, match="there is no virtual camera"):
        v4l2.find_output("", nodes)
