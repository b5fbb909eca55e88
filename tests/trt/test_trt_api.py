"""What is used of TensorRT exists in its real bindings, and nothing is used that is not looked at here."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

import pytest

from engines.building import api as building_api
from engines.building.api import TensorRtBuilder
from engines.tensorrt import api
from engines.tensorrt.api import PACKAGES, TensorRt
from tests.building.test_build_network import fake as fake_builder
from tests.conftest import ROOT
from tests.contract.test_import_law import imported
from tests.trt import fake_tensorrt
from tests.trt.bindings import VERSIONS, Bindings, fetched, obstacle
from tests.trt.surface import class_faults, faults, is_table, signature, tables

pytestmark = pytest.mark.trt_api
APIS = (api, building_api)


@pytest.fixture(scope="session")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Bindings]:
    """The real bindings of every version that is served."""
    if reason := obstacle():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("bindings")
    found: dict[str, Bindings] = {}
    for version in VERSIONS:
        one = fetched(version, folder)
        if isinstance(one, str):
            if "CI" in os.environ:
                pytest.fail(one)  # there it is part of what is promised
            pytest.skip(one)
        found[version] = one
    return found


@pytest.fixture(scope="session")
def real(bindings: Mapping[str, Bindings]) -> Mapping[str, Mapping[str, Any]]:
    """What they have."""
    return {version: one.described() for version, one in bindings.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_that_is_used_is_there(real: Mapping[str, Mapping[str, Any]], version: str) -> None:
    assert len(tables(TensorRtBuilder, *APIS)) >= 15
    assert faults(TensorRtBuilder, real[version], *APIS) == []


class BuilderFlag(Protocol):
    FP16: Any


class NetworkDefinitionCreationFlag(Protocol):
    EXPLICIT_BATCH: Any


class ICudaEngine(Protocol):
    @property
    def device_memory_size(self) -> int: ...

    def create_execution_context_without_device_memory(self) -> Any: ...


class Outdated(TensorRt, Protocol):
    """What programs of a few years ago use."""

    BuilderFlag: BuilderFlag
    NetworkDefinitionCreationFlag: NetworkDefinitionCreationFlag


def test_names_that_were_dropped_turn_it_red(real: Mapping[str, Mapping[str, Any]]) -> None:
    here = sys.modules[__name__]
    old, new = (faults(Outdated, real[version], here) for version in ("10.13.3.9", "11.4.0.106"))
    assert old == []
    assert new == [
        "BuilderFlag.FP16 is not there",
        "ICudaEngine.create_execution_context_without_device_memory is no function there",
        "ICudaEngine.device_memory_size is no property there",
        "NetworkDefinitionCreationFlag.EXPLICIT_BATCH is not there",
    ]


class Wrong:
    """Other kinds, names and results than the real ones."""

    @property
    def infer_shapes(self) -> Any: ...

    def set_input_shape(self, name: str, dims: tuple[int, ...]) -> bool: ...  # type: ignore[empty-body]  # never run

    def set_tensor_address(self, name: str) -> bool: ...  # type: ignore[empty-body]  # never run

    def set_device_memory(self, memory: int, size: int) -> bool: ...  # type: ignore[empty-body]  # never run

    def execute_async_v2(self, bindings: list[int], stream_handle: int) -> bool: ...  # type: ignore[empty-body]  # never run


@pytest.mark.parametrize("version", VERSIONS)
def test_other_kinds_names_and_results_turn_it_red(real: Mapping[str, Mapping[str, Any]], version: str) -> None:
    told = list(class_faults("Context", Wrong, real[version]["IExecutionContext"]["members"], {}))
    assert [" ".join(line.split()[:2]) for line in told] == [
        "Context.infer_shapes is",
        "Context.set_input_shape(name, dims)",
        "Context.set_tensor_address(name) is",
        "Context.set_device_memory gives",
        "Context.execute_async_v2 is",
    ]


def test_what_is_nowhere_turns_it_red(real: Mapping[str, Mapping[str, Any]]) -> None:
    class Newer(TensorRt, Protocol):
        no_such_thing: str

        def no_such_function(self) -> None: ...

    told = faults(Newer, real["11.4.0.106"], api)
    assert told == ["no_such_function is no function there", "no_such_thing is not there"]


@pytest.mark.parametrize(
    ("line", "names", "required", "returns"),
    [
        ("f(self: m.A, x: int) -> bool", ("x",), 1, "bool"),
        ("2. f(self: m.A, x: list[int, str], y: m.E = <E.A: 0>) -> List[str]", ("x", "y"), 1, "List[str]"),
        ("f(trt_type) -> Any", ("trt_type",), 1, "Any"),
        ("f() -> None", (), 0, "None"),
    ],
)
def test_help_is_read(line: str, names: tuple[str, ...], required: int, returns: str) -> None:
    assert signature(line) == (names, required, returns)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["ILogger", "Runtime", "ICudaEngine", "IExecutionContext", "TensorIOMode"])
def test_the_fake_has_nothing_that_the_real_one_has_not(
    real: Mapping[str, Mapping[str, Any]], version: str, name: str
) -> None:
    kind, members = getattr(fake_tensorrt, name), real[version][name]["members"]
    values = {
        value
        for value, thing in vars(kind).items()
        if not value.startswith("_") and not isinstance(thing, FunctionType | property)
    }
    values = set(kind.__members__) if issubclass(kind, Enum) else values
    assert values <= members.keys()
    assert list(class_faults(name, kind, members, {})) == []


BUILDING = {
    "Profile": "IOptimizationProfile",
    "Cache": "ITimingCache",
    "Config": "IBuilderConfig",
    "ParserError": "ParserError",
    "OnnxParser": "OnnxParser",
    "Builder": "Builder",
    "IProgressMonitor": "IProgressMonitor",
}
"""Classes of the stand-in for the builder -> what they are called in the real bindings."""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", BUILDING)
def test_the_fake_builder_has_nothing_that_the_real_one_has_not(
    real: Mapping[str, Mapping[str, Any]], version: str, name: str
) -> None:
    members = real[version][BUILDING[name]]["members"]
    assert list(class_faults(name, getattr(fake_builder(), name), members, {})) == []


# --- nothing is used that is not looked at ---------------------------------------------------------------------------


def sources(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """The files of ``engines``, parsed."""
    for path in sorted((root / "engines").rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imports_of_tensorrt(root: Path) -> list[str]:
    """Files that import TensorRT themselves."""
    return [file for file, tree in sources(root) for _, name in imported(tree) if name.partition(".")[0] in PACKAGES]


def test_only_the_table_imports_tensorrt(tmp_path: Path) -> None:
    assert imports_of_tensorrt(ROOT) == []  # the table imports it by a name out of ``PACKAGES``
    bad = tmp_path / "engines/bad.py"
    bad.parent.mkdir()
    bad.write_text("def late():\n    import tensorrt as trt\n")
    assert imports_of_tensorrt(tmp_path) == ["engines/bad.py"]


def used_names(root: Path) -> set[str]:
    """Every attribute that is asked for, and every name of a function that a class is made of (a key)."""
    nodes = [node for _, tree in sources(root) for node in ast.walk(tree)]
    keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys if isinstance(key, ast.Constant)]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {str(key.value) for key in keys}


def test_the_table_lists_nothing_that_is_not_used() -> None:
    listed = {
        name
        for table_module in APIS
        for table in vars(table_module).values()
        if is_table(table)
        for name in (*vars(table), *vars(table).get("__annotations__", {}))
        if not name.startswith("_")
    }
    assert listed - used_names(ROOT) == set()
    assert "platform_has_fast_fp16" not in used_names(ROOT)


WRONG = {
    "load_builder().BuilderFlag.FP16": '"BuilderFlag" has no attribute "FP16"',
    "load_builder().Builder(logger).platform_has_fast_fp16": "has no attribute",
    "load().Runtime(logger).deserialize_cuda_engine(b'').get_tensor_name(0)": 'Item "None" of',
    "context.execute_async_v2([], 1)": '"IExecutionContext" has no attribute "execute_async_v2"',
    "context.set_input_shape('x', 3)": "incompatible type",
    "load_builder().Builder(logger).create_optimization_profile().set_shape('x', (1, 3), (1, 3))": "Missing positional",
}
"""Code that uses what is not in the table -> what the checker says of it."""


@pytest.mark.parametrize("code", WRONG)
def test_the_checker_holds_the_code_to_the_table(checked: Mapping[str, str], code: str) -> None:
    assert WRONG[code] in checked[code]


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What the checker says of wrong code, all in one run."""
    pytest.importorskip("mypy", reason="the type checker is in the extra dev")
    folder = tmp_path_factory.mktemp("checked")
    lines = [
        "from engines.building.api import load_builder",
        "from engines.tensorrt.api import IExecutionContext, Logger, load",
        "def wrong(logger: Logger, context: IExecutionContext) -> None:",
        *(f"    {code}" for code in WRONG),
    ]
    (folder / "wrong.py").write_text("\n".join(lines) + "\n")
    command = ("-m", "mypy", "--cache-dir", str(folder / "cache"), "--output", "json", str(folder / "wrong.py"))
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        code: "; ".join(line["message"] for line in told if line["line"] == 4 + number and "wrong" in line["file"])
        for number, code in enumerate(WRONG)
    }


# --- what runs on the real bindings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_logger_listens_to_the_real_one(bindings: Mapping[str, Bindings], version: str) -> None:
    code = (
        "import engines.tensorrt.api as api\n"
        "api.PACKAGES = ('tensorrt_bindings',)\n"
        "trt, words = api.load(), api.Words()\n"
        "logger = api.listening(trt, words)\n"
        "for severity in (trt.ILogger.ERROR, trt.ILogger.INFO, trt.ILogger.WARNING):\n"
        "    logger.log(severity, f' {severity.name} ')\n"
        "print(trt.__version__, words, isinstance(logger, trt.ILogger))\n"
    )
    assert bindings[version].python("-c", code).split("\n")[0] == f"{version} ERROR; WARNING True"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_library_that_gives_no_runtime_is_told(bindings: Mapping[str, Bindings], version: str) -> None:
    told = json.loads(bindings[version].python("-m", "engines.tensorrt.trial"))
    assert told["ok"] is False
    assert told["reason"] == f"TensorRT {version} does not start: TensorRT gave no reason"
    assert "pip install tensorrt" in told["hint"]
