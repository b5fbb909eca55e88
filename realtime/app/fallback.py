"""The last step of the chain: where nothing can run the network that makes the face, the mesh does; opens no camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from realtime.app.faces import SourceFaces, load_faces
from realtime.app.networks import Networks
from realtime.app.path import build_pipeline
from realtime.config import Settings
from realtime.errors import EngineError
from realtime.meter import Meter
from realtime.pipeline import Pipeline
from realtime.swappers import MESH


@dataclass(frozen=True, slots=True)
class Scene:
    """What a run shows, ready for the first picture.

    Attributes:
        settings: that it was made from: those that were asked for, or with the mesh swapper.
        faces: that are shown.
        pipeline: that paints them.
    """

    settings: Settings
    faces: SourceFaces
    pipeline: Pipeline


def set_up(settings: Settings, networks: Networks, meter: Meter, tell: Callable[[str], None]) -> Scene:
    """Read the faces and make the path of a frame, or go on with the mesh where no runtime can run the network.

    Whoever names a runtime or a provider wants that one or an error. With both at "auto" everything that could run the
    network has been tried when this gives up: TensorRT and ONNX Runtime on a GPU, ONNX Runtime on the processor.

    Args:
        settings: checked.
        networks: opened.
        meter: gets the figures of the run.
        tell: told in words what goes wrong later, and at once why the mesh is used.

    Raises:
        IdentityError: a photo cannot be used.
        ModelError: a model is missing or wrong: that can be mended, so no other swapper is taken.
        EngineError: nothing can run the network, and no other swapper is wanted instead.
    """
    engine, name = settings.engine, settings.swap.engine
    gives_way = engine.fallback and engine.runtime == engine.provider == "auto" and name != MESH
    try:
        return _set_up(settings, networks, meter, tell)
    except EngineError as error:
        if not gives_way:
            raise
        tell(f"the mesh swapper is used, because nothing here runs {name}: {error.message}; {error.hint}")
        swap = settings.swap.model_copy(update={"engine": MESH})
        return _set_up(settings.model_copy(update={"swap": swap}), networks, meter, tell)


def _set_up(settings: Settings, networks: Networks, meter: Meter, tell: Callable[[str], None]) -> Scene:
    faces = load_faces(settings, networks)
    return Scene(settings, faces, build_pipeline(settings, networks, faces, meter, tell))
