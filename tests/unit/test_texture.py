"""A photo becomes a texture of bare skin: no hair, no background, both sides, whatever the photo is like."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.cpu import CpuDevice
from realtime import topology
from realtime.assets import demo_photo, sample_source
from realtime.swappers.texture import TEXTURE_PX, FaceTexture, build_texture, spread, unwrap_photo
from realtime.types import F32, U8
from tests.actor import pose
from tests.faces import Eyes, Portrait

N = TEXTURE_PX
SKIN = 20
"""Distance in CIE Lab within which two patches of one face are skin; hair and cloth are two or three times farther."""


@pytest.fixture
def collins(eyes: Eyes) -> Portrait:
    """From the front, a fringe over the forehead, an open smile, 107 pixels high."""
    return eyes.portrait(sample_source())


@pytest.fixture
def hopper(eyes: Eyes) -> Portrait:
    """A little turned, a hat and glasses."""
    return eyes.portrait(demo_photo())


@pytest.fixture(scope="module")
def bare(eyes: Eyes) -> FaceTexture:
    """The texture of ``collins``."""
    return eyes.identity(sample_source()).texture


def lab(texture: F32 | U8) -> F32:
    return cv2.cvtColor(np.clip(texture, 0, 255).astype(np.float32) / 255, cv2.COLOR_BGR2Lab)


def around(points: tuple[int, ...], radius: float = 0.03) -> tuple[np.ndarray, ...]:
    """Texels near mesh points, as indices."""
    mask = np.zeros((N, N), np.uint8)
    for u, v in topology.face_mesh().uv[list(points)]:
        cv2.circle(mask, (int(u * N), int(v * N)), int(radius * N), 255, -1)
    return np.nonzero(mask)


LEFT_CHEEK, RIGHT_CHEEK = (50, 205), (280, 425)
FOREHEAD = (10, 109, 338, 67, 297, 151, 108, 337, 69, 299)


def off_skin(texture: F32 | U8, points: tuple[int, ...]) -> F32:
    """How far the texels about some points are from the colour of the cheeks, in CIE Lab."""
    colours = lab(texture)
    cheek = np.median(colours[around(topology.CHEEKS)], axis=0)
    return np.asarray(np.linalg.norm(colours[around(points)] - cheek, axis=-1), np.float32)


def assert_sound(texture: FaceTexture) -> None:
    assert [level.shape for level in texture.levels] == [(n, n, 3) for n in (512, 256, 128, 64)]
    assert all(level.dtype == np.uint8 for level in texture.levels)
    assert texture.low.shape == (64, 64, 3)
    assert np.isfinite(texture.low).all()
    assert np.abs(texture.low - texture.levels[-1]).mean() < 3


@pytest.mark.parametrize("height_px", [200, 700])  # the larger one is scaled down on the way
def test_a_texel_shows_the_very_place_of_the_photo_that_its_mesh_point_names(height_px: int) -> None:
    side = int(1.6 * height_px)
    mesh = pose(at=(side / 2, side / 2), height_px=height_px)
    step = 250 / side  # a ramp: where the mesh says x, the photo has x * step
    ramp = np.round((np.arange(side) + 0.5) * step).astype(np.uint8)
    photo = np.ascontiguousarray(np.broadcast_to(ramp[None, :, None], (side, side, 3)))
    surface = topology.texel_map(N)
    named = surface.interpolate(mesh[:, :1])[..., 0]
    off_px = (unwrap_photo(photo, mesh, N)[..., 0] / step - named)[surface.inside]
    assert abs(off_px.mean()) < 0.1


def test_the_photos_show_hair_and_a_hat_on_the_forehead(collins: Portrait, hopper: Portrait) -> None:
    """What the next test asks for is not so by itself."""
    for portrait in (collins, hopper):
        assert (off_skin(unwrap_photo(*portrait, N), FOREHEAD) > 1.5 * SKIN).mean() > 0.15


def test_the_texture_shows_bare_skin_there(bare: FaceTexture, hopper: Portrait) -> None:
    for texture in (bare, build_texture(*hopper)):
        assert np.percentile(off_skin(texture.levels[0], FOREHEAD), 99) < SKIN


@pytest.mark.data
@pytest.mark.parametrize("name", ["astronaut", "again", "bird", "book"])
def test_the_texture_of_other_photos_shows_bare_skin_there(eyes: Eyes, data_dir: Path, name: str) -> None:
    portrait = eyes.portrait(data_dir / "faces" / f"{name}.png")
    assert np.percentile(off_skin(build_texture(*portrait).levels[0], FOREHEAD), 99) < SKIN


def test_brows_and_lips_are_left_as_they_are(collins: Portrait, bare: FaceTexture) -> None:
    raw, made = unwrap_photo(*collins, N), bare.levels[0].astype(np.float32)
    for points in ((52, 65), (282, 295), (0, 17)):
        difference = np.linalg.norm(lab(raw) - lab(made), axis=-1)[around(points, 0.012)]
        assert np.median(difference) < 6


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_half_outside_of_the_photo_is_completed_from_the_other(
    collins: Portrait, bare: FaceTexture, side: str
) -> None:
    photo, mesh = collins
    middle = int(mesh[[10, 1, 152], 0].mean())
    whole = bare.levels[0]
    if side == "left":
        photo, mesh = photo[:, middle - 8 :], mesh - np.array([middle - 8, 0, 0], np.float32)
    else:
        photo = photo[:, : middle + 8]
    made = build_texture(np.ascontiguousarray(photo), mesh).levels[0]
    for cheek in (LEFT_CHEEK, RIGHT_CHEEK):
        apart = np.linalg.norm(lab(made)[around(cheek)].mean(0) - lab(whole)[around(cheek)].mean(0))
        assert apart < 8
    lost, kept = (LEFT_CHEEK, RIGHT_CHEEK) if side == "left" else (RIGHT_CHEEK, LEFT_CHEEK)
    detail = [cv2.Laplacian(made[..., 1].astype(np.float32), cv2.CV_32F)[around(c)].std() for c in (lost, kept)]
    assert detail[0] > 0.5 * detail[1]  # skin, not a blur of it


def turned(texture: FaceTexture, yaw_rad: float) -> Portrait:
    """A photo of the face of a texture, turned, before a green wall."""
    turn = cv2.Rodrigues(np.array([0.0, -yaw_rad, 0.0]))[0]
    mesh = (300 * topology.face_mesh().canonical @ turn.T + (200, 200, 0)).astype(np.float32)
    photo = np.full((400, 400, 3), (30, 200, 30), np.uint8)
    attributes = np.ones((468, 8), np.float32)
    attributes[:, :2] = topology.face_mesh().uv
    attributes[:, 3:5] = 0
    opaque = np.ones((2, 2, 2), np.float32)
    on_centres = mesh - np.array([0.5, 0.5, 0], np.float32)
    CpuDevice().draw(photo, on_centres, attributes, topology.closed_triangles(), texture.levels[0], opaque)
    return photo, mesh


@pytest.mark.parametrize("yaw_rad", [-0.7, 0.7])
def test_the_hidden_side_of_a_turned_face_is_completed(bare: FaceTexture, yaw_rad: float) -> None:
    photo, mesh = turned(bare, yaw_rad)
    raw, made = unwrap_photo(photo, mesh, N), build_texture(photo, mesh).levels[0].astype(np.float32)

    def greenest(texture: F32) -> float:
        green = texture[..., 1] - np.maximum(texture[..., 0], texture[..., 2])
        return float(green[topology.texel_map(N).inside].max())

    assert greenest(raw) > 100  # the wall shows where the cheek hides
    assert greenest(made) < 25
    for cheek in (LEFT_CHEEK, RIGHT_CHEEK):
        apart = np.linalg.norm(lab(made)[around(cheek)].mean(0) - lab(bare.levels[0])[around(cheek)].mean(0))
        assert apart < 10


def test_a_lamp_at_one_side_of_the_photo_is_taken_out(collins: Portrait) -> None:
    photo, mesh = collins
    x = np.linspace(-1, 1, photo.shape[1])[None, :, None]
    centre = float(mesh[:, 0].mean() / photo.shape[1] * 2 - 1)
    lamp = 1 + 0.45 * np.tanh(6 * (x - centre))
    lit = np.clip(photo * lamp, 0, 255).astype(np.uint8)

    def contrast(texture: F32 | U8) -> float:
        left, right = (float(lab(texture)[around(cheek)][:, 0].mean()) for cheek in (LEFT_CHEEK, RIGHT_CHEEK))
        return abs(left - right)

    assert contrast(unwrap_photo(lit, mesh, N)) > 15
    assert contrast(build_texture(lit, mesh).levels[0]) < 3


def test_the_texture_is_independent_of_its_arguments_and_the_same_every_time(
    collins: Portrait, bare: FaceTexture
) -> None:
    photo, mesh = collins
    before = photo.copy(), mesh.copy()
    first = build_texture(photo, mesh)
    np.testing.assert_array_equal(photo, before[0])
    np.testing.assert_array_equal(mesh, before[1])
    copies = [level.copy() for level in first.levels]
    photo[:], mesh[:] = 0, 0
    for level, copy in zip(first.levels, copies, strict=True):
        np.testing.assert_array_equal(level, copy)
    np.testing.assert_array_equal(first.mesh, before[1])
    for one, other in zip(bare.levels, first.levels, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_grey_photo_gives_a_grey_texture(collins: Portrait) -> None:
    photo, mesh = collins
    grey = np.repeat(cv2.cvtColor(photo, cv2.COLOR_BGR2GRAY)[..., None], 3, axis=2)
    made = build_texture(grey, mesh)
    assert_sound(made)
    assert int(np.ptp(made.levels[0].astype(int), axis=2).max()) <= 2
    assert np.percentile(off_skin(made.levels[0], FOREHEAD), 90) < SKIN


@pytest.mark.parametrize("value", [0, 128, 255])
def test_a_photo_of_one_colour_gives_a_texture_of_it(value: int) -> None:
    mesh = (200 * topology.face_mesh().canonical + (150, 150, 0)).astype(np.float32)
    made = build_texture(np.full((300, 300, 3), value, np.uint8), mesh)
    assert_sound(made)
    assert np.abs(made.levels[0].astype(int) - value).max() <= 2


@pytest.mark.parametrize("height_px", [8, 30, 60])
def test_a_tiny_face_is_no_trouble(collins: Portrait, height_px: int) -> None:
    photo, mesh = collins
    factor = height_px / float(np.ptp(mesh[:, 1]))
    small = cv2.resize(photo, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    made = build_texture(np.asarray(small, np.uint8), mesh * np.float32(factor))
    assert_sound(made)
    if height_px >= 30:
        assert np.percentile(off_skin(made.levels[0], FOREHEAD), 90) < SKIN


def test_a_large_face_is_averaged_down(collins: Portrait, bare: FaceTexture) -> None:
    photo, mesh = collins
    large = np.asarray(cv2.resize(photo, None, fx=6, fy=6, interpolation=cv2.INTER_NEAREST), np.uint8)
    fine, coarse = build_texture(large, mesh * np.float32(6)).levels[2], bare.levels[2]
    inside = cv2.erode(topology.texel_map(128).inside.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    assert np.abs(fine[inside].astype(int) - coarse[inside]).mean() < 6


@pytest.mark.parametrize("cut", ["left", "right", "top", "bottom"])
def test_a_face_at_the_border_of_the_photo_is_no_trouble(collins: Portrait, cut: str) -> None:
    photo, mesh = collins
    (left, top), (right, bottom) = mesh[:, :2].min(0).astype(int), mesh[:, :2].max(0).astype(int)
    third = (right - left) // 3
    rows = slice(top + third if cut == "top" else 0, bottom - third if cut == "bottom" else None)
    columns = slice(left + third if cut == "left" else 0, right - third if cut == "right" else None)
    shift = np.array([columns.start, rows.start, 0], np.float32)
    made = build_texture(np.ascontiguousarray(photo[rows, columns]), mesh - shift)
    assert_sound(made)
    skin = np.array([off_skin(made.levels[0], cheek).mean() for cheek in (LEFT_CHEEK, RIGHT_CHEEK)])
    assert skin.max() < SKIN


@given(seed=st.integers(0, 1000), share=st.floats(0.05, 1))
def test_spreading_keeps_what_is_known_and_invents_no_colour(seed: int, share: float) -> None:
    random = np.random.default_rng(seed)
    values = random.uniform(40, 200, (32, 32, 3)).astype(np.float32)
    known = (random.random((32, 32)) < share).astype(np.float32)
    known[0, 0] = 1
    filled = spread(values, known)
    np.testing.assert_allclose(filled[known > 0], values[known > 0], rtol=1e-5)
    low, high = values[known > 0].min(0), values[known > 0].max(0)
    assert (filled >= low - 0.5).all()
    assert (filled <= high + 0.5).all()
