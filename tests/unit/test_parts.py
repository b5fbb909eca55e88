"""Who gets whose face, from the words of the settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime import app
from realtime.assets import sample_source
from realtime.config import Settings, default_layer, flag, resolve
from realtime.errors import ConfigError
from realtime.people.parts import Part, pairs, parts_of


def made(
    *,
    source: list[str] | None = None,
    only: list[str] | None = None,
    map_: list[str] | None = None,
    which: object = "largest",
) -> Settings:
    values = {"source.photos": source or [], "faces.only": only or [], "faces.map": map_ or [], "faces.which": which}
    return resolve([default_layer(), *(flag("--test", key, value) for key, value in values.items())])


SAMPLE = (str(sample_source()),)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (made(), (Part(SAMPLE),)),
        (made(source=["a", "b"]), (Part(("a", "b")),)),
        (made(source=["a"], only=["x", "y"]), (Part(("a",), ("x", "y")),)),
        (made(only=["x"]), (Part(SAMPLE, ("x",)),)),
        (made(source=["a"], map_=["x=m"]), (Part(("m",), ("x",)),)),
        (made(map_=["x=m", "y=n", "z=m"]), (Part(("m",), ("x", "z")), Part(("n",), ("y",)))),
        (made(map_=["x=m,y=n"]), (Part(("m",), ("x",)), Part(("n",), ("y",)))),
        (made(source=["a"], only=["x"], map_=["y=m"]), (Part(("a",), ("x",)), Part(("m",), ("y",)))),
    ],
)
def test_each_face_that_is_shown_has_the_people_who_get_it(settings: Settings, parts: tuple[Part, ...]) -> None:
    assert parts_of(settings) == parts


@pytest.mark.parametrize("settings", [made(only=["x", "x"]), made(map_=["x=a", "x=b"]), made(only=["x"], map_=["x=a"])])
def test_who_is_named_twice_is_told(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="x is named twice"):
        parts_of(settings)


@pytest.mark.parametrize("wrong", ["x.jpg", "=x.jpg", "x.jpg=", ""])
def test_a_pair_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"faces\.map is .* must be a list of pairs"):
        made(map_=[wrong])


NAMES = st.text("abc,. /", min_size=1, max_size=8).map(lambda name: name.strip(" ,") or "a")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4))
def test_names_with_commas_come_through_one_by_one(names: list[tuple[str, str]]) -> None:
    assert pairs(tuple(f"{them}={me}" for them, me in names)) == [(a.strip(), b.strip()) for a, b in names]


@pytest.mark.parametrize(("which", "most"), [("largest", 8), ("all", 8), (2, 2)])
def test_named_people_are_all_swapped_and_a_number_still_limits_them(which: object, most: int) -> None:
    from tests.unit.test_choose import sighting

    chooser = app.build_chooser(made(only=["x"], which=which))
    assert len(chooser.choose(sighting(list(range(1, 9)), []))[0]) == most
