"""The recipe for a container: nobody is root in it, nothing listens, and it takes what the package is made of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

RECIPE = ROOT / "configs" / "docker" / "Dockerfile"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

Instructions = list[tuple[str, str]]


def stages(text: str) -> list[Instructions]:
    """Name and argument of each instruction, continued lines joined, by stage."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    made: list[Instructions] = []
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            made.append([])
        if name:
            made[-1].append((name.upper(), rest))
    return made


def arguments(found: Instructions, name: str) -> list[str]:
    return [rest for other, rest in found if other == name]


def copied(found: Instructions) -> set[str]:
    """What is taken from the folder of the program."""
    return {part for rest in arguments(found, "COPY") if "--from" not in rest for part in rest.split()[:-1]}


def needed() -> set[str]:
    """What a wheel is built of: the packages, and the files that pyproject.toml names outside of them."""
    packages = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    files = {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], "pyproject.toml"}
    return packages | {file for file in files if file.partition("/")[0] not in packages}


def faults(text: str) -> list[str]:
    """What is wrong with a recipe."""
    every = stages(text)
    last = every[-1]
    everything = [step for stage in every for step in stage]
    names = [name for name, _ in last]
    bases = arguments(everything, "FROM")
    users = arguments(last, "USER")
    rules = {
        "it runs as root": not users or users[-1].partition(":")[0] in ("root", "0"),
        "it opens a port": any(name == "EXPOSE" for name, _ in everything),
        "its base is not pinned": not all(re.search(r":\d\d\.\d\d-py3\b", base) for base in bases),
        "its stages differ": len({base.partition(" ")[0] for base in bases}) != 1,
        "it fetches by itself": bool(re.search(r"\b(curl|wget|git clone)\b", text)) or "ADD" in names,
        "it takes too much or too little": {part for stage in every for part in copied(stage)} != needed(),
        "its models are not the user's": not _owns_volumes(last),
        "it looks after itself": arguments(last, "HEALTHCHECK") not in ([], ["NONE"], ['CMD ["doppelcam", "doctor"]']),
    }
    return [fault for fault, wrong in rules.items() if wrong]


def _owns_volumes(found: Instructions) -> bool:
    """A volume whose folder is not there yet would be root's."""
    names = [name for name, _ in found]
    before = "\n".join(rest for name, rest in found[: names.index("VOLUME")] if name == "RUN")
    return all(re.search(rf"--owner \w+ .*{re.escape(path)}\b", before) for path in arguments(found, "VOLUME"))


def test_the_recipe_is_sound() -> None:
    assert faults(RECIPE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("USER 10001", "USER root", "it runs as root"),
        ("USER 10001", "USER 0:0", "it runs as root"),
        ("USER 10001\n", "", "it runs as root"),
        ("VOLUME", "EXPOSE 8000\nVOLUME", "it opens a port"),
        (":26.08-py3", ":latest", "its base is not pinned"),
        (":26.08-py3 AS wheel", ":26.07-py3 AS wheel", "its stages differ"),
        ("USER 10001", "RUN curl -O http://x/y.sh\nUSER 10001", "it fetches by itself"),
        ("COPY configs configs", "COPY . .", "it takes too much or too little"),
        ("COPY engines engines\n", "", "it takes too much or too little"),
        ("VOLUME /models", "VOLUME /home", "its models are not the user's"),
        ("HEALTHCHECK NONE", "HEALTHCHECK CMD curl http://x", "it fetches by itself"),
        ("HEALTHCHECK NONE", "HEALTHCHECK CMD ping x", "it looks after itself"),
    ],
)
def test_a_fault_in_it_is_found(old: str, new: str, fault: str) -> None:
    text = RECIPE.read_text(encoding="utf-8")
    assert old in text
    assert fault in faults(text.replace(old, new))


def test_nothing_but_what_it_takes_is_sent_to_the_builder() -> None:
    lines = Path(f"{RECIPE}.dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == needed()


def test_what_it_installs_and_starts_is_the_projects() -> None:
    text = RECIPE.read_text(encoding="utf-8")
    extras = set(re.findall(r"\.whl\)\[([\w,]+)\]", text)[0].split(","))
    assert extras == {"gpu", "webrtc"}
    assert extras <= PROJECT["project"]["optional-dependencies"].keys()
    assert set(re.findall(r'ENTRYPOINT \["(\w+)"\]', text)) <= PROJECT["project"]["scripts"].keys()
