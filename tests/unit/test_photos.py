"""Photos as strangers have them: turned, grey, deep, see-through, broken and far too large."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from realtime.errors import IdentityError
from realtime.photos import read_photo

RED_RGB, RED_BGR = (220, 30, 10), (10, 30, 220)


def test_colour_comes_as_bgr_that_the_caller_owns(tmp_path: Path) -> None:
    Image.new("RGB", (5, 3), RED_RGB).save(tmp_path / "a.png")
    pixels = read_photo(tmp_path / "a.png")
    assert pixels.shape == (3, 5, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert pixels.flags.writeable
    assert (pixels == RED_BGR).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_turn_noted_by_a_phone_is_applied(tmp_path: Path, orientation: int) -> None:
    # The stored picture is made such that each of the eight turns has to bring the red corner to the top left.
    upright = Image.new("RGB", (32, 16))
    upright.paste(RED_RGB, (0, 0, 8, 8))
    undo = {
        1: [],
        2: [Image.Transpose.FLIP_LEFT_RIGHT],
        3: [Image.Transpose.ROTATE_180],
        4: [Image.Transpose.FLIP_TOP_BOTTOM],
        5: [Image.Transpose.TRANSPOSE],
        6: [Image.Transpose.ROTATE_90],
        7: [Image.Transpose.TRANSVERSE],
        8: [Image.Transpose.ROTATE_270],
    }
    stored = upright
    for step in undo[orientation]:
        stored = stored.transpose(step)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored.save(tmp_path / "a.jpg", exif=exif, quality=95)
    pixels = read_photo(tmp_path / "a.jpg")
    assert pixels.shape == (16, 32, 3)
    assert np.abs(pixels[3, 3].astype(int) - RED_BGR).max() < 12
    assert pixels[12, 28].max() < 12


def test_transparent_parts_are_grey_and_solid_parts_are_untouched(tmp_path: Path) -> None:
    image = Image.new("RGBA", (4, 2), (255, 255, 255, 0))
    image.paste((*RED_RGB, 255), (0, 0, 2, 2))
    image.save(tmp_path / "a.png")
    pixels = read_photo(tmp_path / "a.png")
    assert (pixels[:, :2] == RED_BGR).all()
    assert (pixels[:, 2:] == 128).all()


def test_palette_with_a_transparent_colour(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([*RED_RGB, 0, 255, 0])
    image.putdata([0, 1])
    image.save(tmp_path / "a.png", transparency=1)
    pixels = read_photo(tmp_path / "a.png")
    assert pixels[0].tolist() == [list(RED_BGR), [128, 128, 128]]


@pytest.mark.parametrize(
    ("mode", "value", "grey"),
    [("L", 90, 90), ("1", 1, 255), ("I;16", 32896, 128), ("I", 32896, 128), ("F", 0.5, 128), ("F", 128.0, 128)],
)
def test_grey_of_any_depth_keeps_its_brightness(tmp_path: Path, mode: str, value: float, grey: int) -> None:
    path = tmp_path / "a.tif"
    Image.new(mode, (3, 2), value).save(path)
    pixels = read_photo(path)
    assert pixels.shape == (2, 3, 3)
    assert (pixels == grey).all()


def test_cmyk_and_the_first_picture_of_an_animation(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg")
    blue, green, red = read_photo(tmp_path / "a.jpg")[4, 4].tolist()
    assert red > 200
    assert max(blue, green) < 60
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED_RGB, (0, 0, 255))]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_photo(tmp_path / "a.gif")[0, 0, 2] > 200


def _png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [7100, 12000, 40000])
def test_a_bomb_is_refused_from_its_header(tmp_path: Path, side: int) -> None:
    (tmp_path / "a.png").write_bytes(_png_header(side, side))
    tracemalloc.start()
    with pytest.raises(IdentityError, match="megapixels") as caught:
        read_photo(tmp_path / "a.png")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    assert caught.value.hint


def test_each_kind_of_bad_file_has_its_own_sentence(tmp_path: Path) -> None:
    good = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(good, "PNG")
    (tmp_path / "portrait.png").write_bytes(good.getvalue())
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "torn.png").write_bytes(good.getvalue()[:2000])
    (tmp_path / "text.png").write_text("I am no picture")
    (tmp_path / "page.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    for name, message in (
        ("potrait.png", "no file"),
        ("empty.png", "is empty"),
        ("torn.png", "damaged"),
        ("text.png", "not a picture"),
        ("page.eps", "not a picture"),
        (".", "folder"),
        ("\0", "cannot be read"),
    ):
        with pytest.raises(IdentityError, match=message) as caught:
            read_photo(tmp_path / name if name != "\0" else "\0")
        assert caught.value.hint
    with pytest.raises(IdentityError) as caught:
        read_photo(tmp_path / "potrait.png")
    assert "portrait.png" in caught.value.hint


@given(
    seed=st.sampled_from(["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF"]),
    cut=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=8),
)
def test_a_damaged_file_gives_a_picture_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, seed: str, cut: float, flips: list[tuple[float, int]]
) -> None:
    whole = io.BytesIO()
    Image.linear_gradient("L").resize((24, 16)).convert("RGB").save(whole, seed)
    data = bytearray(whole.getvalue())[: max(1, round(len(whole.getvalue()) * cut))]
    for place, value in flips:
        data[int(place * len(data))] ^= value
    path = tmp_path_factory.getbasetemp() / "damaged.bin"
    path.write_bytes(bytes(data))
    try:
        told: object = read_photo(path).shape[2] == 3
    except IdentityError as error:
        told = error.hint
    assert told


@pytest.mark.data
def test_real_photos(data_dir: Path) -> None:
    photos = sorted((data_dir / "faces").glob("*.png"))
    assert photos
    for path in photos:
        pixels = read_photo(path)
        assert min(pixels.shape[:2]) > 50
        assert pixels.std() > 10
