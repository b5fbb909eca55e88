"""The recipe for a container: nobody is root in it, nothing listens, and it takes what the package is made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

RECIPE = ROOT / "configs" / "docker" / "Dockerfile"


def instructions(text: str) -> list[tuple[str, str]]:
    """Name and argument of each, continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(name.upper(), rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def faults(text: str) -> list[str]:
    """What is wrong with a recipe."""
    found = instructions(text)
    names = [name for name, _ in found]
    base = next(rest for name, rest in found if name == "FROM")
    users = [rest for name, rest in found if name == "USER"]
    wrong = []
    if not users or users[-1] in ("root", "0") or names.index("USER") > names.index("ENTRYPOINT"):
        wrong.append("it runs as root")
    if "EXPOSE" in names:
        wrong.append("it opens a port")
    if not re.search(r":\d\d\.\d\d", base):
        wrong.append("its base is not pinned")
    return wrong


def test_the_recipe_is_sound() -> None:
    assert not faults(RECIPE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("USER doppelcam", "USER root"), "it runs as root"),
        (("VOLUME", "EXPOSE 8000\nVOLUME"), "it opens a port"),
        ((":25.10-py3", ":latest"), "its base is not pinned"),
    ],
)
def test_a_fault_in_it_is_found(change: tuple[str, str], fault: str) -> None:
    text = RECIPE.read_text(encoding="utf-8")
    assert change[0] in text
    assert faults(text.replace(*change)) == [fault]


def test_everything_that_it_copies_is_there_and_let_through() -> None:
    text = RECIPE.read_text(encoding="utf-8")
    copied = [part for name, rest in instructions(text) if name == "COPY" for part in rest.split()[:-1]]
    let_through = Path(f"{RECIPE}.dockerignore").read_text(encoding="utf-8").splitlines()
    for part in copied:
        assert (ROOT / part).exists()
        assert f"!{part}" in let_through


def test_it_installs_what_the_extra_for_gpus_does() -> None:
    import tomllib

    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        "gpu"
    ]
    text = RECIPE.read_text(encoding="utf-8")
    for requirement in extra:
        if not requirement.startswith(("tensorrt", "onnx>")):  # in the base, and in the extra neural
            assert f"'{requirement}'" in text
