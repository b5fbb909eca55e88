"""The one arrow between the rooms: the stage may use the machine room, never the other way round."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

# room -> top-level packages that it must not know
LAW = {
    "engines": {"realtime"},
    "realtime": {"cupy", "pycuda", "tensorrt", "cuda"},
}
HEAVY = ("numba", "av", "onnxruntime", "ai_edge_litert", "cv2", "pyvirtualcam", "mss", "typer", "rich", "pydantic")


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything that a module imports, also by ``import_module("name")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def violations(root: Path) -> list[str]:
    """List every import below a root that its room forbids."""
    found = []
    for room, forbidden in LAW.items():
        for path in sorted((root / room).rglob("*.py")):
            for line, name in imported(ast.parse(path.read_text(encoding="utf-8"))):
                if name.partition(".")[0] in forbidden:
                    found.append(f"{path.relative_to(root)}:{line} imports {name}")
    return found


def test_no_room_knows_what_it_must_not_know() -> None:
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("engines/bad.py", "import realtime"),
        ("engines/bad.py", "from realtime.types import Face"),
        ("engines/deep/bad.py", "def late():\n    from realtime import types"),
        ("engines/bad.py", "import importlib\nimportlib.import_module('realtime.types')"),
        ("realtime/bad.py", "import cupy as cp"),
        ("realtime/swappers/bad.py", "if True:\n    import pycuda.driver"),
        ("realtime/bad.py", "from tensorrt import Logger"),
    ],
)
def test_the_law_turns_red(tmp_path: Path, file: str, code: str) -> None:
    bad = tmp_path / file
    bad.parent.mkdir(parents=True)
    bad.write_text(code)
    assert len(violations(tmp_path)) == 1


def test_allowed_imports_stay_green(tmp_path: Path) -> None:
    for file, code in {"realtime/good.py": "import engines.registry", "engines/good.py": "import cupy"}.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(code)
    assert violations(tmp_path) == []


def test_importing_the_rooms_loads_nothing_heavy() -> None:
    code = f"import realtime, engines, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_reading_the_tables_loads_no_runtime() -> None:
    code = f"import engines.registry, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []
