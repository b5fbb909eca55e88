"""What this machine can do and how to mend what it cannot: one small check for each thing; knows no table layout."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from realtime.errors import LiveError

State = Literal["ok", "missing", "broken"]

# Distribution -> module, of every dependency in pyproject.toml (a test compares the two).
PACKAGES = {
    "numpy": "numpy",
    "opencv-python": "cv2",
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "onnxruntime": "onnxruntime",
    "av": "av",
    "pydantic": "pydantic",
    "typer": "typer",
    "rich": "rich",
    "numba": "numba",
    "pyvirtualcam": "pyvirtualcam",
    "pillow": "PIL.Image",
    "platformdirs": "platformdirs",
    "psutil": "psutil",
    "cv2-enumerate-cameras": "cv2_enumerate_cameras",
    "mss": "mss",
    "httpx": "httpx",
}
STAND_INS = {"onnxruntime": ("onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino")}
"""Distributions with the same module, which are installed in place of one of ``PACKAGES``."""
EMBEDDED_MODELS = ("face_detection_short_range", "face_landmark")
"""What the main job cannot do without, and what comes with the program (a test compares it with what does)."""
KERNELS = ("engines.patch", "engines.raster")
"""Modules with compiled kernels (a test compares them with the sources)."""
LIBRARIES = "on Debian and Ubuntu: sudo apt install libgl1 libglib2.0-0"
REINSTALL = "in the folder of doppelcam: pip install --force-reinstall ."


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Attributes:
        area: group for people, e.g. "packages".
        name: what was looked at.
        state: "ok", "missing" (not there) or "broken" (there, but of no use).
        found: what was found, with numbers.
        fix: what to do; empty when it is ok.
        needed: the main job (a photo on a video file or the demo) cannot run without it.
    """

    area: str
    name: str
    state: State
    found: str
    fix: str = ""
    needed: bool = False


def examine() -> Iterator[Check]:
    """Run every check, one after the other; a check that cannot even start is itself a finding."""
    for area, check in CHECKS.items():
        try:
            yield from check()
        except ImportError as error:
            fix = LIBRARIES if lacks_library(error) else REINSTALL
            yield Check(area, area, "broken", str(error), fix, needed=True)


def can_run(checks: list[Check]) -> bool:
    """Say whether the main job can run: nothing that it needs is missing or broken."""
    return all(check.state == "ok" for check in checks if check.needed)


def lacks_library(error: Exception) -> bool:
    """Say whether a package did not load because a library of the system, which pip cannot bring, is not there."""
    return sys.platform == "linux" and str(error).startswith("lib") and "cannot open shared object" in str(error)


def _machine() -> Iterator[Check]:
    import psutil

    from engines.processor import processor
    from realtime import machine

    version = platform.python_version()
    new_enough = sys.version_info >= (3, 11)
    fix = "" if new_enough else "install Python 3.11 or newer"
    yield Check("machine", "python", "ok" if new_enough else "broken", version, fix, needed=True)
    yield Check("machine", "system", "ok", f"{platform.system()} {platform.release()} ({platform.machine()})")
    yield Check("machine", "processor", "ok", f"{processor()}, {machine.cores()} cores")
    free_mb = psutil.virtual_memory().available // 2**20
    enough = free_mb >= 500
    fix = "" if enough else "close other programs: doppelcam takes up to 500 MB"
    yield Check("machine", "memory", "ok" if enough else "broken", f"{free_mb} MB free", fix, needed=True)


def _packages() -> Iterator[Check]:
    for distribution, module in PACKAGES.items():
        try:
            installed, version = _installed(distribution)
            _load(module)
        except metadata.PackageNotFoundError:
            yield Check(
                "packages", distribution, "missing", "not installed", f"pip install {distribution}", needed=True
            )
        except (ImportError, OSError) as error:  # OSError: a shared library of the package is missing
            fix = LIBRARIES if lacks_library(error) else f"pip install --force-reinstall {installed}"
            yield Check("packages", distribution, "broken", f"does not load: {error}", fix, needed=True)
        else:
            yield Check("packages", distribution, "ok", version, needed=True)


def _load(module: str) -> None:
    """Import a module.

    Raises:
        ImportError: it does not load, or all that is left of it is a folder: pip leaves one where two packages share it
            and one of them is taken away.
    """
    if getattr(importlib.import_module(module), "__file__", None) is None:
        raise ImportError("its files are gone")


def _installed(distribution: str) -> tuple[str, str]:
    """The name of what is installed, a distribution or one that stands in for it, and its version in words."""
    for name in STAND_INS.get(distribution, ()):
        with suppress(metadata.PackageNotFoundError):
            return name, f"{metadata.version(name)} ({name})"
    return distribution, metadata.version(distribution)


def _engines() -> Iterator[Check]:
    from engines import registry

    for name in registry.RUNTIMES:
        if registry.RUNTIMES[name].on_device:
            continue  # in the chain of ways to run networks
        found = registry.probe("runtime", name)
        yield Check("engines", f"runtime {name}", "ok" if found.ok else "missing", found.reason, found.hint)


def _gpu() -> Iterator[Check]:
    from realtime.doctor_gpu import examine_gpu

    return examine_gpu()


def _kernels() -> Iterator[Check]:
    """Look for the compiled kernels where numba keeps them; it names a file after module, kernel and line."""
    kernels = {
        f"{module.rpartition('.')[2]}.{name}-{kernel.py_func.__code__.co_firstlineno}": kernel
        for module in KERNELS
        for name, kernel in vars(importlib.import_module(module)).items()
        if hasattr(kernel, "py_func") and name[0] != "_"
    }
    cold = [name for name, kernel in kernels.items() if not any(Path(kernel.stats.cache_path).glob(f"{name}.*.nbi"))]
    if cold:
        found = f"{len(cold)} of {len(kernels)} not compiled yet: the next start takes seconds longer"
        yield Check("engines", "kernels", "missing", found, "doppelcam warm")
    else:
        yield Check("engines", "kernels", "ok", f"{len(kernels)} compiled")


def _models() -> Iterator[Check]:
    from engines import card, store
    from realtime.families import rule_of

    absent = 0
    for name in card.names():
        needed = name in EMBEDDED_MODELS
        try:
            model = card.load_card(name)
            if store.locate(model) is None and not needed:
                absent += 1
                continue
            found = store.find(model)
            unpublished = store.only_confirmed(found, model)
            if rule := rule_of(model.family):
                card.decode_as(model, rule)  # before a run finds out
        except LiveError as error:
            yield Check("models", name, "broken", error.message, error.hint, needed)
        else:
            size = f"{found.stat().st_size / 1e6:.1f} MB"
            proof = "confirmed by you, not a published file" if unpublished else "as on its card"
            yield Check("models", name, "ok", f"{size}, {proof}", needed=needed)
    if absent:
        yield Check("models", "others", "ok", f"{absent} more are known and not here: doppelcam models list")


def _folders() -> Iterator[Check]:
    from engines import store as models
    from realtime.config import store

    folders = {
        "settings": store.config_dir(),
        "last run": store.last_run_path().parent,
        "models": models.user_folder(),
    }
    for name, folder in folders.items():
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        writable = os.access(there, os.W_OK)
        fix = "" if writable else f"make {there} writable"
        yield Check("folders", name, "ok" if writable else "broken", str(folder), fix)


def _display() -> Iterator[Check]:
    shown = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
    if platform.system() != "Linux":
        yield Check("outputs", "display", "ok", "the desktop")
    elif shown:
        yield Check("outputs", "display", "ok", shown)
    else:
        fix = "start from a desktop session, or use --output virtualcam or a file"
        yield Check("outputs", "display", "missing", "neither DISPLAY nor WAYLAND_DISPLAY is set", fix)


def _virtual_camera() -> Iterator[Check]:
    if sys.platform == "linux":
        yield from _loopback()
        return
    from realtime.sinks import SinkWish
    from realtime.sinks.virtualcam import VirtualCamera
    from realtime.types import Size

    try:
        camera = VirtualCamera("", SinkWish(Size(640, 480)))
    except LiveError as error:
        yield _trouble("virtual camera", error)
    else:
        camera.close()
        yield Check("outputs", "virtual camera", "ok", camera.info.name)


def _loopback() -> Iterator[Check]:
    """On Linux the device is only asked, never opened for writing: a program that reads it would see a flicker."""
    from realtime.sinks import v4l2

    try:
        path, device = v4l2.find_output("")
    except LiveError as error:
        yield _trouble("virtual camera", error)
    else:
        yield Check("outputs", "virtual camera", "ok", f"{device.card} ({path})")
    version, *troubles = v4l2.driver_facts() or ("v4l2loopback is not loaded",)
    for trouble in troubles:
        yield Check("outputs", version, "broken", trouble, v4l2.INSTALL_HINT)


def _trouble(name: str, error: LiveError) -> Check:
    from realtime.sinks import SinkMissingError

    state: State = "missing" if isinstance(error, SinkMissingError) else "broken"
    return Check("outputs", name, state, error.message, error.hint)


def _cameras() -> Iterator[Check]:
    from realtime.sources.cameras import list_cameras

    cameras = list_cameras()
    for camera in cameras:
        yield Check("inputs", f"camera {camera.index}", "ok", camera.name)
    if not cameras:
        yield Check("inputs", "camera", "missing", "no camera found", "plug one in, or use --input demo or a file")


CHECKS: dict[str, Callable[[], Iterator[Check]]] = {
    "machine": _machine,
    "packages": _packages,
    "engines": _engines,
    "kernels": _kernels,
    "gpu": _gpu,
    "models": _models,
    "cameras": _cameras,
    "virtual camera": _virtual_camera,
    "display": _display,
    "folders": _folders,
}
"""Name of each check, for the case that it cannot start, and the check."""
