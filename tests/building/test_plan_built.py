"""From a model to a plan with its note, through the process itself; only TensorRT and the driver are stood in for."""

from __future__ import annotations

import json
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import onnx
import psutil
import pytest

from engines import store
from engines.building import BuildSettings, Outcome, Progress, StoppedError, build
from engines.building.settings import fixed
from engines.card import ModelCard
from engines.cuda.driver import Gpu
from engines.errors import EngineError, ModelError
from engines.plan import find_plan, open_plan, plan_path
from engines.store.lock import alone
from tests.building.convolution import one_picture_card
from tests.building.stand import REAL, asked_of_builder, small_model
from tests.facenets import latent_swapper

Make = Callable[..., Outcome]
PLAIN = BuildSettings()


@pytest.fixture
def card(mine: Path) -> ModelCard:
    return small_model(mine)


@pytest.fixture
def make(card: ModelCard) -> Make:
    return lambda settings=PLAIN, **more: build(card, settings, command=REAL, **more)


def names(mine: Path) -> set[str]:
    return {path.name for path in (mine / "plans").iterdir() if not path.name.startswith(".")}


def test_a_plan_is_built_once_and_then_found(make: Make, card: ModelCard, mine: Path) -> None:
    seen, warnings = list[Progress](), list[str]()
    first = make(on_progress=seen.append, on_warning=warnings.append)
    assert first.is_new
    assert first.reasons == ()
    assert [*dict.fromkeys(now.stage for now in seen)] == [
        "checking the model",
        "preparing the graph",
        "converting",
        "building",
        "writing",
    ]
    assert max(len(now.phases) for now in seen) == 2
    assert warnings == ["half of it is slow"]
    assert first.plan.path == plan_path(card)
    assert names(mine) == {"one.1x3x8x8.fp16.plan", "one.1x3x8x8.fp16.json", "RTX-4090.89.11.4.0.106.timings"}
    note = first.plan.sidecar
    assert (note.model, note.precision, note.tensorrt, note.gpu) == ("one", "fp16", "11.4.0.106", "RTX 4090")
    assert note.model_sha256 == store.fingerprint(mine / "one.onnx", card)
    assert note.shapes == {"in": (1, 3, 8, 8), "out": (1, 3, 8, 8)}
    assert note.settings["islands"] == 0
    again = make()
    assert not again.is_new
    assert again.plan == first.plan
    forced = make(force=True)
    assert forced.is_new
    assert forced.reasons == ()
    assert asked_of_builder(forced.plan)["cache"] == "timings of this GPU", "what was measured is used again"


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("FAKE_TENSORRT_VERSION", "10.13.3.9", "was built by TensorRT 11.4.0.106, this is 10.13.3.9"),
        ("FAKE_GPU", '{"name": "RTX 3060", "capability": [8, 6]}', "was built for compute capability 8.9"),
        ("FAKE_GPU", '{"driver": "12.8"}', "this one is older: CUDA 12.8"),
    ],
)
def test_a_plan_for_something_else_is_built_anew_and_the_reason_told(
    make: Make, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    make()
    monkeypatch.setenv(variable, value)
    second = make()
    assert second.is_new
    assert reason in second.reasons[0]


def test_a_plan_of_another_file_and_a_spoilt_one_are_built_anew(make: Make, card: ModelCard, mine: Path) -> None:
    path = make().plan.path
    path.write_bytes(path.read_bytes() + b"?")
    spoilt = make()
    assert "has changed since" in spoilt.reasons[0]
    changed = small_model(mine, operator="Tanh")
    other = build(changed, BuildSettings(), command=REAL)
    assert "was built from another file" in other.reasons[0]


def test_precisions_and_batches_lie_beside_each_other(make: Make, card: ModelCard, mine: Path) -> None:
    assert asked_of_builder(make(BuildSettings(precision="fp32")).plan)["off"] == ["TF32"]
    swapper = latent_swapper(side=32)
    onnx.save(swapper.model, mine / "latent.onnx")
    data = (mine / "latent.onnx").read_bytes()
    sha256 = store.proof.digest(mine / "latent.onnx")
    latent = replace(swapper.card, name="latent", file="latent.onnx", sha256=sha256, size_bytes=len(data))
    plan = build(latent, BuildSettings(pictures=4), command=REAL).plan
    assert plan.path.name == "latent.4x3x32x32.fp16.plan"
    assert plan.sidecar.style_inputs
    assert onnx.load_from_string(plan.read_style()).graph.output[0].name in plan.sidecar.style_inputs
    assert int(plan.sidecar.settings["islands"]) > 0
    found = find_plan(fixed(latent, BuildSettings(pictures=4)), sha256, gpu_of(plan.path), plan.sidecar.tensorrt)
    assert found == plan


def gpu_of(path: Path) -> Gpu:
    note = open_plan(path).sidecar
    return Gpu(note.gpu, note.capability, 1, note.driver, note.uuid)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("crashes", r"was ended by SIGSEGV \(Fatal Python error: Segmentation fault\) while building"),
        ("does not parse", "TensorRT does not understand one: Strange"),
        ("runs out of memory", "out of memory"),
    ],
)
def test_a_build_that_fails_leaves_the_old_plan_and_nothing_half(
    make: Make, card: ModelCard, mine: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    before = make().plan
    kept = names(mine)
    monkeypatch.setenv("FAKE_TENSORRT", script)
    with pytest.raises(EngineError, match=words):
        make(force=True)
    assert names(mine) == kept
    assert open_plan(before.path).read() == before.read()


def test_it_is_stopped_in_the_middle_of_tensorrts_work(make: Make, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TENSORRT", "hangs")
    steps: list[int] = []
    with pytest.raises(StoppedError):
        make(
            on_progress=lambda now: steps.extend(phase.done for phase in now.phases[1:]),
            cancelled=lambda: 2 in steps,
        )
    assert names(mine) == set()


def test_what_libraries_print_is_no_message(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TENSORRT", "prints")
    assert make().is_new


def test_two_builds_of_one_plan_do_not_meet(make: Make, card: ModelCard) -> None:
    path = plan_path(card)
    path.parent.mkdir()
    with alone(path), pytest.raises(ModelError, match=r"another doppelcam is building one\.1x3x8x8\.fp16\.plan"):
        make()


def test_a_model_that_is_not_here_or_spoilt_is_told(make: Make, mine: Path) -> None:
    (mine / "one.onnx").write_bytes(b"spoilt")
    with pytest.raises(ModelError, match="has 6 bytes"):
        make()
    (mine / "one.onnx").unlink()
    with pytest.raises(ModelError, match=r"one\.onnx is in none of"):
        make()


@pytest.fixture
def pictures(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(8):
        cv2.imwrite(str(folder / f"{number}.png"), rng.integers(0, 256, (12, 16, 3), np.uint8))
    yield folder
    assert len(list(folder.iterdir())) >= 8, "samples are only read"


def test_whole_numbers_are_found_out_on_pictures(mine: Path, pictures: Path) -> None:
    card = one_picture_card(mine)
    seen: list[Progress] = []
    settings = BuildSettings("int8", calibration=pictures)
    plan = build(card, settings, seen.append, command=REAL).plan
    assert plan.sidecar.precision == "int8"
    assert plan.sidecar.settings["whole_number_layers"] == 1
    assert 0 < float(plan.sidecar.settings["whole_number_error"]) < 0.1
    assert max(phase.done for now in seen for phase in now.phases if phase.name == "reading samples") == 8
    (pictures / "a.png").write_bytes(b"no picture")
    with pytest.raises(ModelError, match=r"a\.png is no picture"):
        build(card, settings, command=REAL, force=True)
    (pictures / "a.png").write_bytes(png_header(60_000, 60_000))
    with pytest.raises(ModelError, match=r"a\.png is too large to be read"):
        build(card, settings, command=REAL, force=True)


def png_header(width: int, height: int) -> bytes:
    """The beginning of a picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b"")


def test_the_note_is_json_that_a_person_can_read(make: Make) -> None:
    note = json.loads(make(BuildSettings(optimisation=5)).plan.path.with_suffix(".json").read_text())
    assert note["settings"]["optimisation"] == 5
    assert note["settings"]["seconds"] >= 0


def test_ctrl_c_of_a_run_does_not_look_like_a_failed_build(make: Make) -> None:
    """A terminal sends it to every process; whoever asked for the plan decides what it means."""

    def interrupt(now: Progress) -> None:
        if now.stage == "checking the model":
            for process in psutil.Process().children():
                process.send_signal(signal.SIGINT)

    assert make(on_progress=interrupt).is_new


def test_a_bug_in_the_process_is_told_in_its_own_words(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TENSORRT", "has a bug")
    with pytest.raises(EngineError, match=r"ended with code 1 \(ZeroDivisionError: .*\) while building"):
        make()
