"""What was computed once is read again, privately, and damage costs nothing but time."""

from __future__ import annotations

import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.people.vectorcache import VectorCache, _digest_of
from realtime.types import F32

VECTOR = np.linspace(-1, 1, 512, dtype=np.float32)


class Counted:
    """Makes a vector and counts how often."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> F32:
        self.made += 1
        return VECTOR.copy()


def recalled(folder: Path | None, make: Counted, key: Sequence[str | bytes] = ("a", b"b")) -> F32:
    """By a program that has just been started."""
    return VectorCache(folder).recall(key, make)


def test_the_second_start_makes_nothing(tmp_path: Path) -> None:
    make = Counted()
    for _ in range(3):
        found = recalled(tmp_path / "new" / "faces", make)
        np.testing.assert_array_equal(found, VECTOR)
        assert found.dtype == np.float32
        found[:] = 0  # it is the caller's own
    assert make.made == 1
    recalled(tmp_path / "new" / "faces", make, ("a", b"c"))
    assert make.made == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a user's folder private by other means")
def test_files_and_folder_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "faces"
    recalled(folder, Counted())
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"x", b"\0" * 40])
@pytest.mark.parametrize("keep", [0, 20, 32, 100, 2000])
def test_a_damaged_file_is_made_anew(tmp_path: Path, keep: int, damage: bytes) -> None:
    make = Counted()
    recalled(tmp_path, make)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:keep] + damage)
    for _ in range(2):
        np.testing.assert_array_equal(recalled(tmp_path, make), VECTOR)
    assert make.made == 2
    assert list(tmp_path.iterdir()) == [file]


def test_one_flipped_bit_is_seen(tmp_path: Path) -> None:
    make = Counted()
    recalled(tmp_path, make)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    np.testing.assert_array_equal(recalled(tmp_path, make), VECTOR)
    assert make.made == 2


def test_a_place_that_cannot_be_written_or_none_at_all_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    for folder in (tmp_path / "file", tmp_path / "file" / "faces", None):
        make = Counted()
        for _ in range(2):
            np.testing.assert_array_equal(recalled(folder, make), VECTOR)
        assert make.made == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> F32:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        VectorCache(tmp_path).recall(("a",), fail)
    assert not list(tmp_path.iterdir())


KEYS = st.lists(st.one_of(st.text(max_size=4).filter(lambda text: text.isascii()), st.binary(max_size=4)), max_size=4)


@given(KEYS, KEYS)
def test_different_keys_have_different_names(one: list[str | bytes], other: list[str | bytes]) -> None:
    def plain(key: list[str | bytes]) -> list[bytes]:
        return [part.encode() if isinstance(part, str) else part for part in key]

    assert (_digest_of(one) == _digest_of(other)) == (plain(one) == plain(other))
