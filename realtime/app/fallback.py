"""What a run does with less where it cannot have all: steps down, each told with its reason; opens no camera."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from realtime.app.device import PROCESSOR
from realtime.app.faces import SourceFaces, load_faces
from realtime.app.networks import Networks, open_networks
from realtime.app.path import build_pipeline
from realtime.config import Settings
from realtime.errors import EngineError, OutOfMemoryError
from realtime.meter import Meter
from realtime.pipeline import Pipeline
from realtime.swappers import MESH

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a run shows, ready for the first picture.

    Attributes:
        settings: that it was made from: those that were asked for, or with less.
        faces: that are shown.
        pipeline: that paints them.
    """

    settings: Settings
    faces: SourceFaces
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a run can do without where the device's memory is short.

    Attributes:
        words: what becomes of it.
        helps: whether there is something to leave out, and nobody insists on it.
        section: of the settings that changes.
        change: its keys and values.
    """

    words: str
    helps: Callable[[Settings], bool]
    section: str
    change: dict[str, object]


STEPS_DOWN = (
    Step("faces are worked on once, without swap.boost", lambda now: now.swap.boost > 1, "swap", {"boost": 1}),
    Step("faces are not made finer", lambda now: bool(now.enhance.model), "enhance", {"model": ""}),
    Step(
        "the processor works instead of the GPU",
        lambda now: now.engine.device == now.engine.runtime == now.engine.provider == "auto",
        "engine",
        {"device": PROCESSOR, "provider": PROCESSOR, "runtime": "onnxrt"},
    ),
)
"""The least loss first: a boost is four times the memory of a swapper, an enhancer works at 512 x 512."""


@contextmanager
def open_run(settings: Settings, meter: Meter, tell: Tell) -> Iterator[tuple[Networks, Scene]]:
    """Open networks and faces, with less where the memory of the device does not hold them; frees them at the end.

    Args:
        settings: checked.
        meter: gets the figures of the run.
        tell: told in words what goes wrong later, and at once what is left out and why.

    Raises:
        OutOfMemoryError: there is no room, and nothing left that can be left out.
        IdentityError: a photo cannot be used.
        ModelError: a model is missing or wrong.
        EngineError: nothing can run the network, and no other swapper is wanted instead.
        DeviceError: the device cannot be used.
    """
    steps = list(STEPS_DOWN)
    while True:
        with ExitStack() as stack:
            try:
                networks = stack.enter_context(open_networks(settings))
                scene = set_up(settings, networks, meter, tell)
            except OutOfMemoryError as error:
                why = error
            else:
                yield networks, scene
                return
        # What was opened is closed by now: the next try has all of the memory.
        while steps and not steps[0].helps(settings):
            steps.pop(0)
        if not steps:
            raise why
        step = steps.pop(0)
        tell(f"{step.words}: {why.message}")
        changed = getattr(settings, step.section).model_copy(update=step.change)
        settings = settings.model_copy(update={step.section: changed})


def set_up(settings: Settings, networks: Networks, meter: Meter, tell: Tell) -> Scene:
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
        OutOfMemoryError: the device has no room.
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


def _set_up(settings: Settings, networks: Networks, meter: Meter, tell: Tell) -> Scene:
    faces = load_faces(settings, networks)
    return Scene(settings, faces, build_pipeline(settings, networks, faces, meter, tell))
