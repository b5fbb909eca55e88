"""Identities in every convention, on networks with the contracts of the real ones; and what a second start opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engines.contract import Engine
from engines.emap import read_emap
from engines.errors import EngineError, ModelError
from realtime.assets import demo_photo, sample_source
from realtime.identity import Portrait
from realtime.landmarks import points5
from realtime.meter import Meter
from realtime.models import Models
from realtime.people import latents
from realtime.people.beat import AFTER_S
from realtime.people.embedding import Embedding, embedding_of, least_alike, mean_of, mixed
from realtime.people.latents import LatentRule
from realtime.people.recognise import embedding_of_photo, open_recogniser
from realtime.people.vectorcache import VectorCache
from realtime.swappers import Kit, Look, latent
from realtime.swappers.likeness import LikenessSwapper
from realtime.types import F32
from tests.cards import net, put
from tests.facenets import emap_of, latent_swapper
from tests.faces import Eyes, face_of
from tests.helpernets import arcface, converter, vector_stub
from tests.networks_identity import colourist

RAW = np.random.default_rng(1).normal(0, 1, 512).astype(np.float32)
ONE = embedding_of(RAW, "a test")


class Counted(Models):
    """Models that note which are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def open(self, name: str, batch: int = 1) -> Engine:
        self.names.append(name)
        return super().open(name, batch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    return folder


@pytest.fixture
def photos(eyes: Eyes) -> list[Portrait]:
    return [Portrait(str(path), *eyes.portrait(path), 1) for path in (sample_source(), demo_photo())]


def converted(folder: Path, rule: LatentRule, embedding: Embedding = ONE) -> F32:
    swapper = put(folder, latent_swapper())
    with Models() as models:
        made = latents.Latents(swapper, rule, models, VectorCache()).of_source(embedding)
    assert made.shape == (1, 512)
    assert made.dtype == np.float32
    return made[0]


def test_unit_is_the_direction(folder: Path) -> None:
    np.testing.assert_allclose(converted(folder, LatentRule("r", "unit")), RAW / np.linalg.norm(RAW), atol=1e-6)


def test_both_lengths_of_an_emap_latent_are_those_of_the_programs_that_use_them(folder: Path) -> None:
    theirs = RAW @ emap_of()
    np.testing.assert_allclose(
        converted(folder, LatentRule("r", "emap", "latent")), theirs / np.linalg.norm(theirs), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        converted(folder, LatentRule("r", "emap", "embedding")), theirs / np.linalg.norm(RAW), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("norm", ["latent", "none"])
def test_a_converter_gets_the_raw_vector(folder: Path, norm: Any) -> None:
    name = put(folder, converter())
    (expected,) = ort.InferenceSession(str(folder / f"{name}.onnx")).run(None, {"input": RAW[None]})
    length = np.linalg.norm(expected) if norm == "latent" else 1
    found = converted(folder, LatentRule("r", "crossface", norm, name))
    np.testing.assert_allclose(found, np.asarray(expected)[0] / length, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "unit", "norm": "none"},
        {"kind": "unit", "norm": "embedding"},
        {"kind": "emap", "norm": "none"},
        {"kind": "crossface", "norm": "embedding", "converter": "c"},
        {"kind": "crossface"},
        {"kind": "unit", "converter": "c"},
    ],
)
def test_a_card_that_contradicts_itself_is_refused(folder: Path, rule: dict[str, str]) -> None:
    name = put(folder, latent_swapper(), latent={"recogniser": "r", **rule})
    with Models() as models, pytest.raises(ModelError, match=r"latent: (norm|converter)"):
        latent.identify([], Kit(None, models, name, Look(), Meter()))  # type: ignore[arg-type]  # no device is needed


VECTORS = hnp.arrays(np.float32, 8, elements=st.floats(-10, 10, width=32)).filter(lambda v: np.linalg.norm(v) > 0.1)


@given(st.lists(VECTORS, min_size=1, max_size=4))
def test_photos_count_the_same_whatever_their_length_and_the_mean_keeps_it(vectors: list[F32]) -> None:
    each = [embedding_of(vector, "a test") for vector in vectors]
    direction = np.mean([vector / np.linalg.norm(vector) for vector in vectors], axis=0)
    if np.linalg.norm(direction) < 1e-3:
        return
    mean = mean_of(each)
    np.testing.assert_allclose(mean.direction, direction / np.linalg.norm(direction), atol=1e-3)
    assert mean.length == pytest.approx(np.mean([np.linalg.norm(v) for v in vectors]), rel=1e-4)
    np.testing.assert_allclose(np.linalg.norm(mean.raw), mean.length, rtol=1e-4)
    longer = mean_of([embedding_of(vectors[0] * 3, "a test"), *each[1:]])
    np.testing.assert_allclose(longer.direction, mean.direction, atol=1e-3)


@given(VECTORS, VECTORS, st.floats(0, 1))
def test_a_mix_goes_straight_from_one_to_the_other(one: F32, other: F32, likeness: float) -> None:
    source, target = embedding_of(one, "a test"), embedding_of(other, "a test")
    if float(source.direction @ target.direction) < -0.9:
        return
    np.testing.assert_allclose(mixed(source, target, 1.0).raw, source.raw, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mixed(source, target, 0.0).raw, target.raw, rtol=1e-4, atol=1e-4)
    mix = mixed(source, target, likeness)
    straight = source.direction * likeness + target.direction * (1 - likeness)
    np.testing.assert_allclose(mix.direction, straight / np.linalg.norm(straight), atol=1e-4)
    assert min(source.length, target.length) - 1e-3 <= mix.length <= max(source.length, target.length) + 1e-3


@pytest.mark.parametrize(("value", "said"), [(np.nan, "no numbers"), (np.inf, "no numbers"), (0.0, "zeros")])
def test_a_recogniser_that_says_nothing_is_an_error(
    value: float, said: str, folder: Path, photos: list[Portrait], eyes: Eyes
) -> None:
    vector = np.zeros(512, np.float32)
    vector[7] = value
    put(folder, vector_stub("broken", vector))
    with Models() as models, pytest.raises(EngineError, match=f"broken made .*{said}"):
        open_recogniser("broken", models, eyes.device).embed(photos[0].pixels, photos[0].points5)


@pytest.mark.parametrize(
    ("built", "said"),
    [
        (converter("wrong"), "recognises nobody"),
        (
            net("wrong", "arcface", arcface().model, arcface().card.inputs, arcface().card.outputs, {"template": "x"}),
            "'x'",
        ),
    ],
)
def test_a_card_that_is_no_recognisers_is_refused_before_anything_is_loaded(
    built: Any, said: str, folder: Path, eyes: Eyes
) -> None:
    put(folder, built)
    models = Counted()
    with models, pytest.raises(ModelError, match=said):
        open_recogniser("wrong", models, eyes.device)
    assert models.names == []


def test_a_recogniser_with_vectors_of_another_length_is_told_for_a_matrix(folder: Path) -> None:
    put(folder, latent_swapper())
    with Models() as models:
        made = latents.Latents("test_inswapper", LatentRule("short", "emap"), models, VectorCache())
        with pytest.raises(ModelError, match=r"short gives 8 numbers, .*test_inswapper takes 512"):
            made.of(embedding_of(RAW[:8], "a test"))


def test_an_identity_that_the_swapper_does_not_take_is_told_before_the_first_picture(
    folder: Path, photos: list[Portrait], eyes: Eyes
) -> None:
    put(folder, vector_stub("short", RAW[:8]))
    put(folder, latent_swapper("swapper", kind="unit", recogniser="short"))
    with Models() as models:
        kit = Kit(eyes.device, models, "swapper", Look(), Meter())
        identity = latent.identify(photos[:1], kit)
        with pytest.raises(ModelError, match=r"swapper takes its identity as \[1, 512\], .*short.* \[1, 8\]"):
            latent.open_swapper(identity, kit)


def test_the_crop_that_is_recognised_is_the_aligned_face(folder: Path, photos: list[Portrait], eyes: Eyes) -> None:
    """One person, moved, turned and scaled: the vectors hardly differ; two persons: they do."""
    put(folder, colourist())
    with Models() as models:
        recogniser = open_recogniser("test_colourist", models, eyes.device)
        one, other = (recogniser.embed(photo.pixels, photo.points5) for photo in photos)
        turned = np.ascontiguousarray(np.rot90(photos[0].pixels))
        height = photos[0].pixels.shape[0]
        x, y, z = photos[0].mesh.T
        width = photos[0].pixels.shape[1]
        again = recogniser.embed(turned, points5(np.stack([y, width - x, z], axis=1)))
    assert height == width
    assert least_alike([one, again]) > 0.999
    assert least_alike([one, other]) < 0.7
    assert least_alike([one]) == 1.0


RULES = {
    "unit": {"recogniser": "test_arcface", "kind": "unit"},
    "emap": {"recogniser": "test_arcface", "kind": "emap", "norm": "embedding"},
    "crossface": {"recogniser": "test_arcface", "kind": "crossface", "norm": "none", "converter": "test_crossface"},
}


@pytest.mark.parametrize("kind", RULES)
def test_a_second_start_opens_nothing_but_the_swapper(
    kind: str, folder: Path, photos: list[Portrait], eyes: Eyes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, arcface())
    put(folder, converter())
    emaps: list[Path] = []

    def counted(path: Path) -> F32:
        emaps.append(path)
        return read_emap(path)

    monkeypatch.setattr(latents, "read_emap", counted)
    cache = VectorCache(folder / "cache")
    opened: list[list[str]] = []

    def start(swapper: str, portraits: Sequence[Portrait]) -> F32:
        models = Counted()
        with models:
            kit = Kit(eyes.device, models, swapper, Look(), Meter(), cache=cache)
            identity = latent.identify(portraits, kit)
            latent.open_swapper(identity, kit)
            opened.append(models.names)
            rule = latent._rule(kit).latent
            return latents.Latents(swapper, rule, models, cache).of_source(identity)

    swapper = put(folder, latent_swapper(), latent=RULES[kind])
    first = start(swapper, photos)
    np.testing.assert_array_equal(start(swapper, photos), first)
    extra = ["test_crossface"] if kind == "crossface" else []
    assert opened == [["test_arcface", "test_arcface", *extra, swapper], [swapper]]
    assert len(emaps) == (kind == "emap")
    start(swapper, photos[:1])
    assert opened[2] == [*extra, swapper], "each photo is known by itself"
    changed = replace(photos[0], pixels=photos[0].pixels.copy())
    changed.pixels[0, 0] += 1
    start(swapper, [changed])
    assert opened[3] == ["test_arcface", swapper], "another picture, but the face in it is the same"
    put(folder, arcface(seed=1))
    assert not np.allclose(start(swapper, photos), first), "another recogniser"
    if kind == "emap":
        swapper = put(folder, latent_swapper(seed=5), latent=RULES[kind])
        start(swapper, photos)
        assert len(emaps) == 2, "another swapper has another matrix"


def test_photos_of_two_people_are_told_and_those_of_one_are_not(
    folder: Path, photos: list[Portrait], eyes: Eyes
) -> None:
    put(folder, colourist())
    swapper = put(folder, latent_swapper(recogniser="test_colourist"))
    told: list[str] = []
    with Models() as models:
        kit = Kit(eyes.device, models, swapper, Look(), Meter(), tell=told.append)
        latent.identify([photos[0], photos[0]], kit)
        assert told == []
        latent.identify([photos[0], replace(photos[1], pixels=255 - photos[1].pixels)], kit)
    assert len(told) == 1
    assert "may not be of one person" in told[0]


class Painter:
    """A swapper that notes which latent it is told to show."""

    def __init__(self, tensor: F32) -> None:
        self.tensor, self.shown = tensor, list[F32]()
        self.painted = None
        self.known: set[int] = set()

    def swap(self, pixels: Any, face: Any, now_s: float, steps: Any) -> bool:
        self.shown.append(self.tensor[0].copy())
        return True

    def forget(self, followed: Any) -> None:
        self.known = set(followed)


class Gallery:
    """A recogniser that knows the person in view by the first pixel."""

    def __init__(self) -> None:
        self.looks = 0
        self.error: EngineError | None = None

    def embed(self, pixels: Any, points5: F32) -> Embedding:
        self.looks += 1
        if self.error:
            raise self.error
        vector = np.zeros(8, np.float32)
        vector[int(pixels[0, 0, 0])] = 4
        return embedding_of(vector, "a test")


def test_below_full_likeness_each_person_gets_a_mix_and_is_looked_at_seldom(eyes: Eyes) -> None:
    _, mesh = eyes.portrait(sample_source())
    tensor, gallery = np.zeros((1, 8), np.float32), Gallery()
    painter = Painter(tensor)
    source = embedding_of(np.eye(8, dtype=np.float32)[0] * 2, "a test")
    swapper = LikenessSwapper(painter, tensor, source, 0.75, gallery, lambda e: e.direction[None], Meter())  # type: ignore[arg-type]  # a stand-in
    pictures = [np.full((512, 512, 3), n, np.uint8) for n in range(3)]
    for frame in range(3):
        for person in (1, 2):
            assert swapper.swap(pictures[person], face_of(mesh, person), frame / 30, ())
    assert gallery.looks == 2
    for n, latent_shown in enumerate(painter.shown):
        mix = np.zeros(8)
        mix[0], mix[1 + n % 2] = 0.75, 0.25
        np.testing.assert_allclose(latent_shown, mix / np.linalg.norm(mix), atol=1e-6)
    swapper.forget([1])
    assert painter.known == {1}
    gallery.error = EngineError("no", "try")
    with pytest.raises(EngineError):
        swapper.swap(pictures[2], face_of(mesh, 2), 0.1, ())
    gallery.error = None
    assert swapper.swap(pictures[2], face_of(mesh, 2), 0.11, ())
    shown = painter.shown[-1]
    assert swapper.swap(pictures[1], face_of(mesh, 2), 0.12 + AFTER_S[0], ())
    assert painter.shown[-1][1] > 0, "another look moves it half of the way"
    assert painter.shown[-1][2] < shown[2]
    looks = gallery.looks
    for away in (np.full_like(mesh, np.nan), mesh + np.array([9000, 0, 0], np.float32), mesh * 0):
        assert not swapper.swap(pictures[1], face_of(away, 3), 1.0, ())
    assert gallery.looks == looks, "nobody looks where no face can be painted over"


def test_the_real_family_recognises_the_target_only_below_full_likeness(
    folder: Path, photos: list[Portrait], eyes: Eyes
) -> None:
    put(folder, colourist())
    swapper = put(folder, latent_swapper(recogniser="test_colourist"))
    shown = {}
    for likeness in (1.0, 0.5, 0.0):
        models = Counted()
        with models:
            kit = Kit(eyes.device, models, swapper, Look(likeness=likeness), Meter())
            identity = latent.identify(photos[:1], kit)
            models.names.clear()
            made = latent.open_swapper(identity, kit)
            assert ("test_colourist" in models.names) == (likeness < 1)
            picture = photos[1].pixels.copy()
            assert made.swap(picture, face_of(photos[1].mesh), 0.0, ())
            shown[likeness] = picture
            if likeness == 0.0:  # the same as with the person's own photo as the source
                own = latent.open_swapper(latent.identify(photos[1:], kit), replace(kit, look=Look()))
                expected = photos[1].pixels.copy()
                assert own.swap(expected, face_of(photos[1].mesh), 0.0, ())
                np.testing.assert_allclose(picture.astype(int), expected.astype(int), atol=1)
    assert (shown[1.0] != shown[0.5]).any()
    assert (shown[0.5] != shown[0.0]).any()


@pytest.mark.parametrize("kind", RULES)
def test_below_full_likeness_nothing_is_read_any_more_once_a_swapper_is_open(
    kind: str, folder: Path, photos: list[Portrait], eyes: Eyes, tmp_path: Path
) -> None:
    put(folder, colourist())
    put(folder, converter())
    swapper = put(folder, latent_swapper(), latent={**RULES[kind], "recogniser": "test_colourist"})
    for _ in range(2):  # the second time the latent of the source comes from the cache
        with Models() as models:
            cache = VectorCache(tmp_path / "cache")
            kit = Kit(eyes.device, models, swapper, Look(likeness=0.5), Meter(), cache=cache)
            made = latent.open_swapper(latent.identify(photos[:1], kit), kit)
            away = folder.rename(tmp_path / "away")
            assert made.swap(photos[1].pixels.copy(), face_of(photos[1].mesh), 0.0, ())
            away.rename(folder)


def test_a_photo_is_recognised_the_same_from_the_cache_and_without(
    folder: Path, photos: list[Portrait], eyes: Eyes
) -> None:
    put(folder, arcface())
    kept = VectorCache(folder / "cache")
    with Models() as models:
        each = [
            embedding_of_photo(photos[0], "test_arcface", models, eyes.device, cache)
            for cache in (VectorCache(), kept, kept)
        ]
    for other in each[1:]:
        np.testing.assert_array_equal(other.direction, each[0].direction)
        assert other.length == each[0].length
    assert each[0].length > 0
