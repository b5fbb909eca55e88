"""TensorRT's real Python bindings without TensorRT: fetched from the package registry, imported over empty libraries.

The bindings only need nine functions to be there when they are imported; nothing calls them before a runtime is made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSIONS = ("10.13.3.9", "10.16.1.11", "11.4.0.106")
"""The oldest that is served, one between, and the one that is aimed at."""
PACKAGE = "tensorrt-cu13-bindings"
FOLDER = "DOPPELCAM_TENSORRT_BINDINGS"
"""Environment variable of a folder that has the package unpacked, a folder for each version; else pip fetches it."""
_LIBRARIES = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
_FUNCTIONS = (
    "createInferBuilder_INTERNAL",
    "createInferRefitter_INTERNAL",
    "createInferRuntime_INTERNAL",
    "createNvOnnxParser_INTERNAL",
    "createNvOnnxParserRefitter_INTERNAL",
    "getBuilderPluginRegistry",
    "getNvOnnxParserVersion",
    "getPluginRegistry",
    "initLibNvInferPlugins",
)


@dataclass(frozen=True)
class Bindings:
    """The bindings of one version.

    Attributes:
        folder: to import ``tensorrt_bindings`` from.
        libraries: where the empty libraries are.
        version: in full.
    """

    folder: Path
    libraries: Path
    version: str

    def python(self, *arguments: str) -> str:
        """Run Python where these bindings can be imported; what it prints."""
        path = os.pathsep.join((str(self.folder), *sys.path))
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.libraries), "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def described(self) -> Mapping[str, Any]:
        """What the module has, see ``describe.py``."""
        found = json.loads(self.python(str(Path(__file__).with_name("describe.py")), str(self.folder)))
        assert found["version"] == self.version
        module: Mapping[str, Any] = found["module"]
        return module


def obstacle() -> str:
    """Why the bindings cannot be imported here; empty where nothing is in the way."""
    if sys.platform != "linux":
        return "the bindings are looked at on Linux"
    return "" if compiler() else "no C compiler is installed"


def compiler() -> str | None:
    """Where a C compiler is, if there is one."""
    return next((found for name in ("gcc", "g++", "cc") if (found := shutil.which(name))), None)


def fetched(version: str, folder: Path) -> Bindings | str:
    """Fetch the bindings of a version and build libraries for them, or say why that cannot be done."""
    given = os.environ.get(FOLDER)
    place = Path(given) / version if given else folder / version
    if not (place / "tensorrt_bindings").is_dir():
        command = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", str(place)]
        done = pip(*command, f"{PACKAGE}=={version}")
        if done.returncode:
            return f"{PACKAGE} {version} cannot be fetched: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}"
    return Bindings(place, empty_libraries(version, folder / f"{version}-libraries"), version)


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip."""
    command: Sequence[str] = (sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def empty_libraries(version: str, folder: Path) -> Path:
    """Build libraries whose functions give nothing."""
    folder.mkdir()
    source = folder / "empty.c"
    source.write_text("".join(f"void* {name}(void) {{ return 0; }}\n" for name in _FUNCTIONS))
    for name in _LIBRARIES:
        library = folder / f"lib{name}.so.{version.partition('.')[0]}"
        subprocess.run(
            [str(compiler()), "-shared", "-fPIC", "-x", "c", str(source), "-o", str(library)], check=True, timeout=60
        )
    return folder
