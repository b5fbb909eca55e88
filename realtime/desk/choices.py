"""What there is to choose from on this machine, in words; opens nothing."""

from __future__ import annotations

from engines import card, store
from engines.errors import ModelError
from realtime.desk.messages import Choice
from realtime.sources.cameras import list_cameras
from realtime.swappers import FAMILIES, MESH

_FAMILIES = {"enhance.model": "enhancer", "masks.occlusion": "occlusion", "masks.regions": "regions"}


def engines() -> tuple[Choice, ...]:
    """What can make the face: the mesh, and the models that are here."""
    found = [Choice(value=MESH, words="mesh: built in, no model needed")]
    for name in card.names():
        known = _here(name)
        if known is not None and known.family in FAMILIES and known.family != MESH:
            found.append(Choice(value=name, words=f"{name} ({known.family})"))
    return tuple(found)


def models() -> dict[str, tuple[str, ...]]:
    """What each setting that names a model can name: none, and the models that are here, by the setting's key."""
    here = {name: known.family for name in card.names() if (known := _here(name)) is not None}
    return {key: ("", *(name for name, kind in here.items() if kind == family)) for key, family in _FAMILIES.items()}


def _here(name: str) -> card.ModelCard | None:
    try:
        known = card.load_card(name)
    except ModelError:
        return None
    return known if store.locate(known) is not None else None


def inputs(*, networked: bool) -> tuple[Choice, ...]:
    """Where pictures can come from. Asks the system for its cameras, which may take seconds.

    Args:
        networked: whether the web server runs.
    """
    cameras = [Choice(value=str(camera.index), words=str(camera)) for camera in list_cameras()]
    network = (
        [Choice(value="browser", words="the browser's camera"), Choice(value="whip", words="OBS and others, by WHIP")]
        if networked
        else []
    )
    return (*network, *cameras, Choice(value="demo", words="the built-in demo"), Choice(value="screen", words="screen"))
