"""What is said about the driver, and what the system's refusals become."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("V4L2 is a Linux matter", allow_module_level=True)

from realtime.errors import SinkError
from realtime.sinks import SinkMissingError, v4l2


def module(folder: Path, version: str, exclusive: str) -> Path:
    (folder / "parameters").mkdir()
    (folder / "version").write_text(f"{version}\n")
    (folder / "parameters" / "exclusive_caps").write_text(f"{exclusive}\n")
    return folder


@pytest.mark.parametrize(
    ("version", "exclusive", "warnings"),
    [
        ("0.15.4", "Y,N,N", 0),
        ("0.15.0", "N,N,N", 1),
        ("0.12.7", "Y", 1),
        ("0.9.1", "N", 2),
        ("1.0", "Y", 0),
    ],
)
def test_the_driver_s_troubles_are_named(tmp_path: Path, version: str, exclusive: str, warnings: int) -> None:
    facts = v4l2.driver_facts(module(tmp_path, version, exclusive))
    assert facts[0] == f"v4l2loopback {version}"
    assert len(facts) - 1 == warnings


def test_without_the_driver_nothing_is_said(tmp_path: Path) -> None:
    assert v4l2.driver_facts(tmp_path / "missing") == ()


def test_without_any_device_the_hint_makes_one() -> None:
    with pytest.raises(SinkMissingError) as caught:
        v4l2.find_output("", [])
    assert 'sudo modprobe v4l2loopback exclusive_caps=1 card_label="doppelcam" video_nr=10' in caught.value.hint
    assert "0.15" in caught.value.hint


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.EBUSY, errno.ENOTTY, errno.EIO])
def test_every_refusal_of_the_system_becomes_an_instruction(code: int) -> None:
    found = v4l2.explain("/dev/video10", OSError(code, "as the system says it"))
    assert isinstance(found, SinkError)
    assert "/dev/video10" in found.message
    assert found.hint
    assert found.fatal == (code != errno.EBUSY)


def test_the_kernel_counts_what_this_thread_wrote(tmp_path: Path) -> None:
    before = v4l2.bytes_written_by_this_thread()
    if before is None:
        pytest.skip("this kernel does not count bytes")
    (tmp_path / "file").write_bytes(bytes(12345))
    after = v4l2.bytes_written_by_this_thread()
    assert after is not None
    assert after - before == 12345
