"""The file under a recording: nothing older is lost, a failure freezes, a trial that failed leaves no litter."""

from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import SinkError
from realtime.sinks.tape import Tape, check_place


@pytest.mark.parametrize("keep", [True, False])
def test_an_older_file_comes_back_unless_the_new_one_is_kept(tmp_path: Path, keep: bool) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"old")
    tape = Tape(path, overwrite=True)
    tape.write(b"new")
    if keep:
        tape.keep()
    tape.close()
    tape.close()
    assert path.read_bytes() == (b"new" if keep else b"old")
    assert [found.name for found in tmp_path.iterdir()] == ["out.mp4"]


def test_while_on_trial_the_older_file_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"old")
    (tmp_path / "out.before-1.mp4").write_bytes(b"older still")
    tape = Tape(path, overwrite=True)
    tape.write(b"new")
    assert (tmp_path / "out.before-2.mp4").read_bytes() == b"old"
    tape.close()
    assert (tmp_path / "out.before-1.mp4").read_bytes() == b"older still"


def test_a_trial_that_was_never_kept_leaves_no_file(tmp_path: Path) -> None:
    Tape(tmp_path / "out.mp4", overwrite=False).close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appeared_in_the_meantime_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"somebody else's")
    with pytest.raises(FileExistsError):
        Tape(path, overwrite=False)
    assert path.read_bytes() == b"somebody else's"


class FullDisk(io.FileIO):
    """A file on a disk that grows to ``most`` bytes; what is there can be replaced even when it is full."""

    most = 0

    def write(self, data: memoryview) -> int:  # type: ignore[override]  # as a tape calls it
        taken = data[: max(0, self.most - self.tell())]
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(taken)


writes = st.lists(st.tuples(st.integers(0, 60), st.binary(min_size=1, max_size=40), st.booleans()), max_size=15)


@given(writes, st.integers(0, 120))
def test_on_a_full_disk_the_file_goes_back_to_its_last_mark(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, bytes, bool]], most: int
) -> None:
    path = tmp_path_factory.mktemp("tape") / "out.mp4"
    tape = Tape(path, overwrite=False)
    tape.keep()
    tape._file.close()
    tape._file = FullDisk(path, "r+")
    tape._file.most = most
    marked = b""
    for position, data, mark in writes:
        tape.seek(min(position, path.stat().st_size))
        assert tape.write(data) == len(data)
        if mark and not tape.error:
            assert tape.mark() == path.stat().st_size
            marked = path.read_bytes()
    whole = path.read_bytes()
    tape.close()
    assert path.read_bytes() == (marked if tape.error else whole)


@pytest.mark.parametrize(
    ("name", "words"),
    [("missing/out.mp4", "there is no folder"), ("folder.mp4", "it is a folder"), ("taken.mp4", "it exists")],
)
def test_a_place_that_cannot_be_used_is_told_before_recording(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "taken.mp4").write_bytes(b"old")
    with pytest.raises(SinkError, match=words) as caught:
        check_place(tmp_path / name, overwrite=False)
    assert caught.value.hint
    assert (tmp_path / "taken.mp4").read_bytes() == b"old"


def test_a_folder_that_takes_no_files_is_told(tmp_path: Path) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("no folder here that is closed to every user")
    with pytest.raises(SinkError, match="nothing can be written in /proc"):
        check_place(Path("/proc/out.mp4"), overwrite=False)
