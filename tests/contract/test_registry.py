"""Every line of the machine room's tables keeps the room's contract, and every refusal says why."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import get_type_hints

import pytest

from engines import registry
from engines.card import load_card
from engines.contract import Availability, Device, Engine
from engines.errors import DeviceError, EngineError
from engines.registry import DEVICES, RUNTIMES, Entry, Kind, open_device, open_engine, probe

LINES: list[tuple[Kind, str]] = [*(("device", name) for name in DEVICES), *(("runtime", name) for name in RUNTIMES)]


def members_of(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize(("kind", "name"), LINES)
def test_every_line_imports_and_has_the_protocols_members(kind: Kind, name: str) -> None:
    table, protocol = (DEVICES, Device) if kind == "device" else (RUNTIMES, Engine)
    found = probe(kind, name)
    if not found.ok:
        pytest.skip(found.reason)
    module, _, attribute = table[name].target.partition(":")
    loaded = getattr(sys.modules[module], attribute)
    if not isinstance(loaded, type):
        loaded = get_type_hints(loaded)["return"]  # a function that makes one
    for member in members_of(protocol):
        theirs, ours = getattr(protocol, member), getattr(loaded, member)
        assert isinstance(ours, property) == isinstance(theirs, property), member
        if not isinstance(theirs, property):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), member


@pytest.mark.parametrize(("kind", "name"), LINES)
def test_a_probe_names_a_version_or_says_what_to_do(kind: Kind, name: str) -> None:
    found = probe(kind, name)
    assert found.reason
    assert found.ok or found.hint


def test_an_unknown_name_is_told_from_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe("runtime", "nonsense") == Availability(
        False, "there is no runtime 'nonsense'", f"use one of: {', '.join(RUNTIMES)}"
    )
    monkeypatch.setitem(RUNTIMES, "ghost", Entry("engines.ghost:Ghost", ("no_such_package",), "pip install ghost"))
    assert probe("runtime", "ghost") == Availability(
        False, "package no_such_package is not installed", "pip install ghost"
    )


@pytest.mark.parametrize("error", [ImportError("libcudart.so.13: cannot open"), OSError("damaged library")])
def test_an_installed_package_that_does_not_load_is_called_broken(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(entry: Entry) -> ModuleType:
        raise error

    monkeypatch.setattr(registry, "_module", refuse)
    found = probe("runtime", "litert")
    assert not found.ok
    assert "is installed but does not load" in found.reason
    assert str(error) in found.reason


def test_a_module_of_our_own_that_does_not_import_is_a_bug_and_no_fault_of_a_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(RUNTIMES, "ghost", Entry("engines.ghost:Ghost", ("cv2",), "pip install opencv-python"))
    with pytest.raises(ModuleNotFoundError, match=r"engines\.ghost"):
        probe("runtime", "ghost")


def test_a_device_that_is_not_there_is_refused_with_the_names_that_are() -> None:
    with pytest.raises(DeviceError, match="no device 'gpu'") as caught:
        open_device("gpu")
    assert "cpu" in caught.value.hint


def test_an_engine_says_what_really_runs() -> None:
    engine = open_engine(load_card("face_landmark"), threads=2)
    assert engine.runtime.startswith("litert ")
    assert engine.runtime.endswith("2 threads")
    engine.close()
    engine.close()


def test_a_runtime_that_cannot_serve_a_card_is_refused() -> None:
    with pytest.raises(EngineError, match="'onnxrt' cannot serve model face_landmark"):
        open_engine(load_card("face_landmark"), runtime="onnxrt")


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(EngineError, match="no runtime 'warp'"):
        open_engine(load_card("face_landmark"), runtime="warp")


def test_auto_never_takes_another_runtime_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        RUNTIMES, "litert", Entry("engines.litert:LiteRtEngine", ("no_such_package",), "pip install it")
    )
    with pytest.raises(EngineError, match="needs runtime 'litert': package no_such_package is not installed") as caught:
        open_engine(load_card("face_landmark"))
    assert caught.value.hint.startswith("pip install it")


def test_a_better_device_that_cannot_be_used_is_named_with_its_reason_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"cuda": Availability(False, "there is no NVIDIA driver", "install it"), "cpu": Availability(True, "here")}
    monkeypatch.setattr(registry, "probe", lambda _, name: found[name])
    device, reasons = registry.open_best_device()
    device.close()
    assert reasons == ("not cuda: there is no NVIDIA driver",)
