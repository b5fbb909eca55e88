"""Every family against the same swap written once more, and against insightface."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from realtime.assets import demo_photo, sample_source
from realtime.identity import Portrait
from realtime.swappers import Look
from realtime.types import F32, U8, Face
from tests import effects, facenets, helpernets
from tests import reference_swap as reference
from tests.facenets import EVERY, IMAGENET
from tests.faces import Eyes, face_of
from tests.reference_swap import Array
from tests.swapstage import PLAIN, Masks, SwapStage

IMAGENET_01 = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
HALF = (0.5, 0.5)
PLAIN_LEVELS = (0.0, 1.0)
# What facts are published of each: alignment, side, levels of the target, levels of the picture.
PUBLISHED: dict[str, tuple[str, int, tuple[Array | float, Array | float], tuple[float, float]]] = {
    "inswapper": ("arcface_128", 128, PLAIN_LEVELS, PLAIN_LEVELS),
    "hyperswap": ("arcface_128", 256, HALF, HALF),
    "ghost": ("arcface_112_v1", 256, HALF, HALF),
    "simswap": ("arcface_112_v1", 256, IMAGENET_01, PLAIN_LEVELS),
    "hififace": ("mtcnn_512", 256, HALF, HALF),
    "uniface": ("ffhq_512", 256, HALF, HALF),
    "blendswap": ("ffhq_512", 256, PLAIN_LEVELS, PLAIN_LEVELS),
}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SwapStage:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    return SwapStage(tmp_path)


@pytest.fixture
def source_photo(eyes: Eyes) -> Portrait:
    return Portrait(str(demo_photo()), *eyes.portrait(demo_photo()), 1)


@pytest.fixture
def scene(eyes: Eyes) -> tuple[U8, Face]:
    """A picture with a large face, and the face."""
    pixels, mesh = eyes.portrait(sample_source())
    return pixels, face_of(mesh)


def centred(face_or_photo: Face | Portrait) -> F32:
    """Five points as the published programs count them, from the centre of the first pixel."""
    return face_or_photo.points5 - np.float32(0.5)


def identity_of(name: str, stage: SwapStage, photo: Portrait) -> Array:
    """What a network is told of the source, by the published rules."""
    if name in ("uniface", "blendswap"):
        template, side = ("ffhq_512", 256) if name == "uniface" else ("arcface_112_v2", 112)
        return reference.tensor(reference.cut(photo.pixels, centred(photo), template, side))
    crop = reference.cut(photo.pixels, centred(photo), "arcface_112_v2", 112)
    (embedding,) = reference.run(stage.folder / "test_arcface.onnx", **{"input.1": reference.tensor(crop, 0.5, 0.5)})
    if name in ("inswapper", "hyperswap"):
        emap = facenets.emap_of() if name == "inswapper" else None
        return reference.latent(embedding, emap, "insightface")
    (latent,) = reference.run(stage.folder / "test_crossface.onnx", input=embedding)
    return latent if name == "ghost" else latent / np.linalg.norm(latent)


def close(ours: Array, theirs: Array, most: float) -> None:
    """Equal up to the rounding of a bilinear sample in a few places."""
    off = np.abs(ours.astype(np.float64) - theirs)
    assert off.max() <= most
    assert off.mean() <= most / 20


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_family_is_told_and_pastes_what_the_published_programs_do(
    name: str, stage: SwapStage, source_photo: Portrait, scene: tuple[U8, Face], monkeypatch: pytest.MonkeyPatch
) -> None:
    template, side, levels, made_levels = PUBLISHED[name]
    (pixels, face), masks = scene, Masks(monkeypatch)
    swapper = stage.swapper(EVERY[name](1), [source_photo])
    painted = pixels.copy()
    assert swapper.swap(painted, face, 0.0, ())
    target, source = stage.heard.told

    crop = reference.cut(pixels, centred(face), template, side)
    grey_level = 1 / (255 * np.min(levels[1]))
    close(target, reference.tensor(crop, *levels), 1.01 * grey_level)
    expected = identity_of(name, stage, source_photo)
    assert source.shape == expected.shape
    cosine = (source * expected).sum() / (np.linalg.norm(source) * np.linalg.norm(expected))
    assert cosine > 0.9999
    assert np.linalg.norm(source) == pytest.approx(np.linalg.norm(expected), rel=2e-3)

    made = reference.run(stage.folder / f"{stage.name}.onnx", target=target, source=source)
    if name in ("hyperswap", "hififace"):
        assert masks.made is not None
        np.testing.assert_allclose(masks.made, made[1][0, 0], atol=1e-6)
    else:
        assert masks.made is None
    whole = reference.paste(pixels, reference.made_picture(made[0], *made_levels), masks.shown, centred(face), template)
    close(painted, whole, 2)
    assert np.abs(painted.astype(int) - pixels).mean() > 1


@pytest.mark.parametrize("name", ["dfm", "amp"])
@pytest.mark.parametrize("morph", [0.25, 1.0])
def test_a_dfm_sees_blue_first_and_its_masks_are_the_lesser_of_both_shrunk_and_softened(
    name: str, morph: float, stage: SwapStage, scene: tuple[U8, Face], monkeypatch: pytest.MonkeyPatch
) -> None:
    (pixels, face), masks = scene, Masks(monkeypatch)
    swapper = stage.swapper(EVERY[name](1), [], Look(colour=0, morph=morph))
    painted = pixels.copy()
    assert swapper.swap(painted, face, 0.0, ())
    target, *rest = stage.heard.told
    crop = reference.cut(pixels, centred(face), "dfl_whole_face", 224)
    close(target[0] * 255, crop, 1.01)
    assert [float(value) for (value,) in rest] == ([pytest.approx(morph)] if name == "amp" else [])

    told = {"in_face__0": target, **({"morph_value__0": rest[0]} if rest else {})}
    seen, made, celeb = reference.run(stage.folder / f"{stage.name}.onnx", **told)
    assert masks.made is not None
    np.testing.assert_allclose(masks.made, reference.dfm_mask(seen[0, ..., 0], celeb[0, ..., 0]), atol=0.02)
    picture = np.rint(made[0].clip(0, 1) * 255).astype(np.uint8)
    close(painted, reference.paste(pixels, picture, masks.shown, centred(face), "dfl_whole_face"), 2)


def test_the_edge_of_a_dfm_mask_is_that_of_the_slow_one(stage: SwapStage, scene: tuple[U8, Face]) -> None:
    from realtime.swappers.dfm import soft

    side = 224
    y, x = np.mgrid[:side, :side]
    disc = (np.hypot(x - 100, y - 120) < 70).astype(np.float32)
    np.testing.assert_allclose(soft(disc.copy()), reference.dfm_mask(disc, disc), atol=0.02)


@pytest.mark.parametrize("by", ["insightface", "FaceFusion"])
def test_both_lengths_of_a_latent_are_those_in_use(
    by: str, stage: SwapStage, source_photo: Portrait, scene: tuple[U8, Face]
) -> None:
    net = facenets.inswapper(norm="latent" if by == "insightface" else "embedding")
    swapper = stage.swapper(net, [source_photo])
    assert swapper.swap(scene[0].copy(), scene[1], 0.0, ())
    told = stage.models.heard["test_arcface"]
    np.testing.assert_allclose(stage.heard.told[1], reference.latent(told.made[0], facenets.emap_of(), by), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "boost", "batch"),
    [("inswapper", 2, -1), ("inswapper", 4, 1), ("hyperswap", 2, 1), ("uniface", 2, 1)],
)
def test_a_boosted_face_is_cut_and_woven_as_facefusion_does(
    name: str,
    boost: int,
    batch: int,
    stage: SwapStage,
    source_photo: Portrait,
    scene: tuple[U8, Face],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (pixels, face), masks = scene, Masks(monkeypatch)
    # So large that the patch is no finer than the picture: there ours is averaged, and theirs skips pixels.
    pixels, face = np.asarray(cv2.resize(pixels, None, fx=2, fy=2)), face_of(face.mesh * 2)
    swapper = stage.swapper(EVERY[name](batch), [source_photo], Look(colour=0, boost=boost))
    painted = pixels.copy()
    assert swapper.swap(painted, face, 0.0, ())
    template, side, levels, made_levels = PUBLISHED[name]

    target, source = stage.heard.told
    whole = reference.cut(pixels, centred(face), template, side * boost)
    parts = [reference.tensor(tile, *levels) for tile in reference.tiles(whole, boost)]
    close(target, np.concatenate(parts), 1.01 / (255 * np.min(levels[1])))

    each = [
        reference.run(stage.folder / f"{stage.name}.onnx", target=tile[None], source=source[:1]) for tile in target
    ]  # one by one: that the batch changes nothing is part of the claim
    picture = reference.woven([reference.made_picture(made[0], *made_levels) for made in each], boost)
    close(painted, reference.paste(pixels, picture, masks.shown, centred(face), template), 2)
    if name == "hyperswap":
        assert masks.made is not None
        planes = [np.repeat(made[1][0, 0][..., None], 3, 2) for made in each]
        np.testing.assert_allclose(masks.made, reference.woven(planes, boost)[..., 0], atol=1e-5)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_swap_is_that_of_insightface_inside_the_face(
    stage: SwapStage, source_photo: Portrait, scene: tuple[U8, Face]
) -> None:
    """Its mask is a box that is eroded and blurred in the picture, by a tenth and a twentieth of the crop's size there.

    Ours ends within the face's outline, so only where both show the new face wholly can they be compared: there what is
    left is that insightface cuts fractions off where we round, twice.
    """
    inswapper = pytest.importorskip("insightface.model_zoo.inswapper")
    pixels, face = scene
    painted = pixels.copy()
    swapper = stage.swapper(facenets.inswapper(), [source_photo])
    assert swapper.swap(painted, face, 0.0, ())

    theirs = inswapper.INSwapper(str(stage.folder / f"{stage.name}.onnx"))
    embedding = stage.models.heard["test_arcface"].made[0]

    class Target:
        kps = centred(face)

    class Source:
        normed_embedding = embedding[0] / np.linalg.norm(embedding)

    made, crop_from_picture = theirs.get(pixels.copy(), Target, Source, paste_back=False)
    crop = cv2.warpAffine(pixels, crop_from_picture, (128, 128), borderValue=0.0)
    close(stage.heard.told[0][0].transpose(1, 2, 0)[..., ::-1] * 255, crop, 1.01)
    latent = Source.normed_embedding @ facenets.emap_of()
    np.testing.assert_allclose(stage.heard.told[1][0], latent / np.linalg.norm(latent), atol=1e-5)

    whole = theirs.get(pixels.copy(), Target, Source)
    hull = cv2.fillConvexPoly(
        np.zeros(pixels.shape[:2], np.uint8), cv2.convexHull(face.mesh[:, :2].astype(np.int32)), 1
    )
    inside = cv2.erode(hull, np.ones((3, 3), np.uint8), iterations=int(np.ptp(face.mesh[:, 1]) / 8)).astype(bool)
    off = painted[inside].astype(np.float64) - whole[inside]
    psnr = 10 * np.log10(255**2 / (off**2).mean())
    assert inside.sum() > 3_000
    assert psnr >= 40, f"{psnr:.1f} dB"
    del made


@pytest.mark.parametrize("name", EVERY)
def test_a_network_that_changes_nothing_leaves_the_picture_as_it_was(
    name: str, stage: SwapStage, source_photo: Portrait, scene: tuple[U8, Face]
) -> None:
    """A shift by half a pixel would show here: it moves the edges of the eyes by tens of grey levels."""
    pixels, face = scene
    smooth = cv2.GaussianBlur(pixels, (0, 0), 4)  # so fine that every crop can hold it
    for shift in (0.0, 0.3):
        moved = Face(face.box_xyxy, 1.0, face.points5 + np.float32(shift), face.mesh, 1, 0)
        net = effects.with_effect(EVERY[name](1), effects.identity)
        painted = smooth.copy()
        assert stage.swapper(net, [source_photo], PLAIN).swap(painted, moved, 0.0, ())
        off = np.abs(painted.astype(int) - smooth)
        assert off.max() <= 2
        assert off.mean() < 0.2


def test_published_levels_are_those_of_the_cards() -> None:
    assert IMAGENET[0] == pytest.approx(IMAGENET_01[0] * 255)
    assert helpernets.arcface().card.inputs[0].mean == (127.5,) * 3
