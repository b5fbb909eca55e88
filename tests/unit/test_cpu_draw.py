"""Drawing against plain numpy, written another way: the weights of each pixel from areas, no steps, no shortcuts."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.cpu import CpuDevice

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

SHAPE = (30, 40)
EDGE = 2e-3
"""Weights nearer to zero than this, and depths nearer to each other, are a matter of rounding."""
SLIVER = 0.5
"""Triangles with less area, in pixels, cover a pixel by chance: no two ways of counting agree on them."""


class Scene(NamedTuple):
    picture: U8
    mesh: F32
    attributes: F32
    triangles: I32
    texture: U8
    opacity: F32

    def draw(self, picture: U8 | None = None, device: CpuDevice | None = None) -> U8:
        """Draw over a picture, or over a copy of the scene's."""
        picture = self.picture.copy() if picture is None else picture
        (device or CpuDevice()).draw(picture, self.mesh, self.attributes, self.triangles, self.texture, self.opacity)
        return picture


def a_scene(seed: int, reach: float = 60.0) -> Scene:
    """Random triangles, some looking away, many partly outside of the picture, with random attributes and light."""
    random = np.random.default_rng(seed)
    points = np.column_stack([random.uniform(-reach / 2, 20 + reach, (12, 2)), random.uniform(-50, 50, 12)])
    spans = [(0, 1), (0, 1), (0, 1), (-4, 4), (-4, 4), (0.3, 2), (0.3, 2), (0.3, 2)]
    attributes = np.column_stack([random.uniform(low, high, 12) for low, high in spans])
    triangles = random.integers(0, 12, (10, 3)).astype(np.int32)
    noise = [random.integers(0, 256, size, np.uint8) for size in ((*SHAPE, 3), (32, 32, 3))]
    opacity = random.uniform(0, 1, (8, 8, 2)).astype(np.float32)
    return Scene(
        np.asarray(cv2.blur(noise[0], (5, 5)), np.uint8),
        points.astype(np.float32),
        attributes.astype(np.float32),
        triangles,
        np.asarray(cv2.blur(noise[1], (5, 5)), np.uint8),
        opacity,
    )


def a_card(left: float, top: float, right: float, bottom: float, z: float = 0.0) -> tuple[F32, I32]:
    """A rectangle of two triangles that face the viewer."""
    mesh = np.array([[left, top, z], [right, top, z], [right, bottom, z], [left, bottom, z]], np.float32)
    return mesh, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def flat(mesh: F32, triangles: I32, grey: F64 | float) -> Scene:
    """Paint a mesh opaque, each point in a grey of its own, on black."""
    attributes = np.zeros((len(mesh), 8), np.float32)
    attributes[:, 2] = 1
    attributes[:, 5:] = np.broadcast_to(np.asarray(grey, np.float32) / 200, len(mesh))[:, None]
    texture = np.full((4, 4, 3), 200, np.uint8)
    return Scene(np.zeros((*SHAPE, 3), np.uint8), mesh, attributes, triangles, texture, np.ones((2, 2, 2), np.float32))


class Seen(NamedTuple):
    attributes: F64
    covered: Mask
    certain: Mask
    """Where no rounding can change which triangle is seen."""


def seen(scene: Scene) -> Seen:
    """Interpolate the attributes of the nearest triangle that faces the viewer, for every pixel."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float64)
    certain = np.ones(SHAPE, bool)
    depths, layers = [np.full(SHAPE, np.inf)] * 2, [np.zeros((*SHAPE, 8))] * 2
    for corners in scene.triangles:
        a, b, c = scene.mesh[corners].astype(np.float64)
        area = float(_twice_area(a, b, c[0], c[1]))
        if area <= 0:
            continue
        areas = np.stack([_twice_area(b, c, x, y), _twice_area(c, a, x, y), _twice_area(a, b, x, y)], -1)
        weights = areas / area
        certain &= np.abs(weights.min(-1)) > EDGE
        depths.append(np.where(weights.min(-1) >= 0, weights @ scene.mesh[corners, 2].astype(np.float64), np.inf))
        layers.append(weights @ scene.attributes[corners].astype(np.float64))
    first, second = np.sort(np.stack(depths), axis=0)[:2]
    covered = np.isfinite(first)
    certain &= ~covered | (second > first + 0.01)
    nearest = np.stack(depths).argmin(0)[None, ..., None]
    return Seen(np.take_along_axis(np.stack(layers), nearest, 0)[0], covered, certain)


def _twice_area(a: F64, b: F64, x: F64, y: F64) -> F64:
    return np.asarray((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]))


def smallest_triangle(scene: Scene) -> float:
    """Area in pixels of the smallest triangle that faces the viewer and has any; infinite without one."""
    a, b, c = (scene.mesh[scene.triangles[:, k]].astype(np.float64) for k in range(3))
    areas = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    return float(areas[areas > 0].min(initial=np.inf))


def bilinear(picture: NDArray[np.generic], x: F64, y: F64) -> F64:
    """Sample a picture, clamped to it."""
    x, y = np.clip(x, 0, picture.shape[1] - 1), np.clip(y, 0, picture.shape[0] - 1)
    i, j = np.minimum(x.astype(int), picture.shape[1] - 2), np.minimum(y.astype(int), picture.shape[0] - 2)
    fx, fy = (x - i)[..., None], (y - j)[..., None]
    p = picture.astype(np.float64)
    upper, lower = p[j, i] * (1 - fx) + p[j, i + 1] * fx, p[j + 1, i] * (1 - fx) + p[j + 1, i + 1] * fx
    return np.asarray(upper * (1 - fy) + lower * fy)


def by_hand(scene: Scene, attributes: F64, covered: Mask) -> F64:
    """The lit texture over the shifted picture."""
    u, v, share, dx, dy = np.moveaxis(attributes[..., :5], -1, 0)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float64)
    fine, side = len(scene.opacity), len(scene.texture)
    shown = bilinear(scene.opacity, u * fine - 0.5, v * fine - 0.5)
    below = bilinear(scene.picture, x + shown[..., 1] * dx, y + shown[..., 1] * dy)
    share = share[..., None] * shown[..., :1]
    skin = bilinear(scene.texture, u * side - 0.5, v * side - 0.5)
    lit = np.minimum(skin * attributes[..., 5:], 255)
    return np.where(covered[..., None], below + share * (lit - below), scene.picture)


@given(seed=st.integers(0, 10_000), reach=st.sampled_from([15.0, 60.0, 1500.0]))
@settings(max_examples=80)
def test_the_lit_texture_of_the_nearest_triangle_is_drawn_within_one_grey_level(seed: int, reach: float) -> None:
    scene = a_scene(seed, reach)
    assume(smallest_triangle(scene) > SLIVER)
    expected = seen(scene)
    off = np.abs(scene.draw() - by_hand(scene, expected.attributes, expected.covered)).max(-1)
    assume(expected.certain.mean() > 0.5)
    assert off[expected.certain].max() <= 1.01


@given(seed=st.integers(0, 10_000), reach=st.sampled_from([15.0, 60.0, 1500.0]))
@settings(max_examples=40)
def test_nothing_changes_where_no_triangle_is(seed: int, reach: float) -> None:
    scene = a_scene(seed, reach)
    expected = seen(scene)
    outside = expected.certain & ~expected.covered
    np.testing.assert_array_equal(scene.draw()[outside], scene.picture[outside])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_triangles_without_area_draw_nothing(seed: int) -> None:
    scene = a_scene(seed)
    scene.triangles[:, 2] = scene.triangles[:, 0]  # two corners are one
    scene.mesh[:3] = np.linspace((0, 0, 0), (30, 20, 0), 3)  # three corners in line
    scene.triangles[0] = 0, 1, 2
    np.testing.assert_array_equal(scene.draw(), scene.picture)


@pytest.mark.parametrize("size", [(0, 0), (0, 40), (2, 2), (3, 50)])
def test_no_triangles_and_hardly_any_pixels_are_no_trouble(size: tuple[int, int]) -> None:
    scene = a_scene(1)
    picture = np.full((*size, 3), 90, np.uint8)
    scene.draw(picture)
    nothing = scene._replace(triangles=scene.triangles[:0])
    np.testing.assert_array_equal(nothing.draw(), scene.picture)


def test_the_nearer_surface_wins_whatever_the_order() -> None:
    near, card = a_card(10, 5, 30, 25, z=-3)
    far, _ = a_card(0, 0, 39, 29, z=5)
    mesh, grey = np.vstack([near, far]), np.repeat([200.0, 100.0], 4)
    for triangles in (np.vstack([card, card + 4]), np.vstack([card + 4, card])):
        drawn = flat(mesh, triangles, grey).draw()
        assert (drawn[6:25, 11:30] == 200).all()
        assert (drawn[:5] == 100).all()


def test_what_looks_away_is_not_drawn() -> None:
    mesh, triangles = a_card(5, 5, 30, 25)
    assert flat(mesh, triangles, 200).draw().any()
    assert not flat(mesh, triangles[:, ::-1].copy(), 200).draw().any()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40)
def test_neighbours_leave_no_seam_between_them(seed: int) -> None:
    """A quad cut into a fan about a random inner point is covered as a whole, and nothing around it."""
    border, _ = a_card(2.3, 1.7, 36.6, 27.4)
    inner = np.random.default_rng(seed).uniform((5, 5, 0), (34, 24, 0))
    fan = np.array([[k, (k + 1) % 4, 4] for k in range(4)], np.int32)
    drawn = flat(np.vstack([border, inner]).astype(np.float32), fan, 200).draw()[..., 0]
    assert (drawn[2:28, 3:37] == 200).all()
    assert int((drawn > 0).sum()) == 26 * 34


@given(seed=st.integers(0, 10_000), thin=st.sampled_from([1.0, 1e-2, 1e-4]))
@settings(max_examples=60)
def test_a_thin_triangle_leaves_no_speckles(seed: int, thin: float) -> None:
    """Over 100 and lit to 100 to 150, every share of the texture lies between 100 and 150."""
    random = np.random.default_rng(seed)
    pixel, angle = random.integers((5, 5), (35, 25)), random.uniform(0, 2 * np.pi)
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)]) * thin
    reach = random.uniform(5, 20, (3, 1))
    points = pixel + reach * [-along, along, along] + [0 * across, -across, across]
    scene = flat(np.column_stack([points, np.zeros(3)]).astype(np.float32), np.array([[0, 1, 2]], np.int32), 150)
    scene.attributes[:, :4] = random.uniform(0, 1, (3, 4))
    scene.attributes[:, 5:] = random.uniform(0.5, 0.75, (3, 1))
    scene.picture[:] = 100
    drawn = scene.draw()
    assert 100 <= drawn.min() <= drawn.max() <= 150


def test_without_opacity_and_offset_the_picture_stays() -> None:
    scene = a_scene(3)
    scene.attributes[:, 2:5] = 0
    np.testing.assert_array_equal(scene.draw(), scene.picture)


def test_without_opacity_the_picture_is_only_moved() -> None:
    mesh, triangles = a_card(8, 6, 30, 24)
    attributes = np.zeros((4, 8), np.float32)
    attributes[:, 3:5] = 3, -2
    scene = a_scene(4)._replace(mesh=mesh, triangles=triangles, attributes=attributes)
    scene.opacity[:] = 1
    np.testing.assert_array_equal(scene.draw()[6:25, 8:31], scene.picture[4:23, 11:34])


def test_what_is_not_to_be_moved_stays() -> None:
    scene = a_scene(3)
    scene.opacity[:] = 0
    np.testing.assert_array_equal(scene.draw(), scene.picture)


def test_a_part_of_a_larger_picture_is_drawn_into_like_a_copy() -> None:
    scene = a_scene(5)
    large = np.random.default_rng(5).integers(0, 256, (60, 90, 3), np.uint8)
    expected = large.copy()
    expected[10:40, 20:60] = scene.draw(large[10:40, 20:60].copy())
    part = large[10:40, 20:60]
    assert not part.flags.c_contiguous
    scene.draw(part)
    np.testing.assert_array_equal(large, expected)


def test_a_device_draws_the_same_after_larger_and_smaller_pictures_and_meshes() -> None:
    device, scene = CpuDevice(), a_scene(6)
    first = scene.draw(device=device)
    for shape in ((90, 120, 3), (3, 2, 3)):
        scene.draw(np.full(shape, 255, np.uint8), device)
    flat(*a_card(0, 0, 20, 20), 200).draw(device=device)
    np.testing.assert_array_equal(scene.draw(device=device), first)


@pytest.mark.parametrize(("factor", "grey"), [(0.0, 0), (1.0, 200), (9.0, 255)])
def test_too_much_light_is_white_and_none_is_black(factor: float, grey: int) -> None:
    mesh, triangles = a_card(-5, -5, 60, 60)
    assert (flat(mesh, triangles, 200 * factor).draw() == grey).all()
