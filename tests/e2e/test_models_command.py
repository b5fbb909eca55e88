"""``doppelcam models`` as a person meets it: its table, its questions, its errors, and a download that is killed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from engines import store
from engines.card import NOT_STATED, load_card
from engines.store import http, records
from realtime.cli import _doppelcam, run
from realtime.commands.models_list import table
from tests.mirror import Mirror, Resource
from tests.own_models import write_card, write_onnx

ROOT = Path(__file__).resolve().parents[2]
GIVE_UP_S = 120
ADDRESS = "https://models.example/one.onnx"

Call = Callable[..., int]


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    monkeypatch.delenv("DOPPELCAM_OFFLINE", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    return folder


@pytest.fixture
def models() -> Call:
    """Run ``doppelcam models ...`` in this process."""
    return lambda *arguments: run(_doppelcam(), "doppelcam", ["models", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return write_onnx(tmp_path / "source.onnx").read_bytes()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No person to ask."""
    with Path(os.devnull).open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield


def serve(monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx.Request], httpx.Response]) -> None:
    real = http.open_client
    monkeypatch.setattr(http, "open_client", lambda: real(transport=httpx.MockTransport(answer)))


def test_list_groups_by_family_and_says_how_each_stands(
    models: Call, mine: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "ready", data, family="a_family")
    (mine / "ready.onnx").write_bytes(data)
    write_card(mine, "broken", data, family="a_family")
    (mine / "broken.onnx").write_bytes(b"short")
    write_card(mine, "far", data, family="a_family", mirrors=(ADDRESS,))
    write_card(mine, "rare", family="b_family", licence="Research", commercial_use=False)
    assert models("list", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    states = {name: rows[name]["state"] for name in ("ready", "broken", "far", "rare", "face_landmark")}
    assert states == {
        "ready": "yours",
        "broken": "damaged",
        "far": "can be pulled",
        "rare": "bring your own",
        "face_landmark": "embedded",
    }
    assert rows["rare"]["commercial_use"] is False
    assert models("list", "--family", "a_family") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line][:5] == ["family", "a_family", "broken", "far", "ready"]
    assert "pull NAME" in lines[-1]
    assert models("list", "--family", "none") == 4


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_that_a_person_types_is_cut_on_a_narrow_terminal(mine: Path, width: int) -> None:
    licence = "A very long licence that nobody reads in full"
    write_card(mine, "somebodys_own_swap_512", licence=licence, commercial_use=False, family="latent")
    card = load_card("somebodys_own_swap_512")
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table([(card, "bring your own", None)] * 50))
    lines = capture.get().splitlines()
    assert len(lines) == 52
    assert all(len(line) <= width for line in lines)
    assert all("somebodys_own_swap_512" in line and "bring your own" in line and " no " in line for line in lines[2:])


def test_the_list_fits_a_terminal_of_80_columns(
    models: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert models("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 and "\N{HORIZONTAL ELLIPSIS}" not in line for line in lines)


def test_a_wrong_card_is_told_and_the_others_are_listed(
    models: Call, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "face_landmark")
    (mine / "torn.toml").write_text("name = ", encoding="utf-8")
    assert models("list") == 1
    told = capsys.readouterr()
    assert "face_detection_short_range" in told.out
    assert "torn.toml is not a TOML file" in told.err
    assert "has the name of a card that comes with the program" in told.err
    assert models("list", "--family", "mesh") == 4
    assert "has the name of a card that comes with the program" in capsys.readouterr().err, "why there is none"


def test_a_wrong_card_does_not_keep_the_others_from_being_checked(
    models: Call, mine: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "zero", data)
    (mine / "zero.onnx").write_bytes(data)
    (mine / "torn.toml").write_text("name = ", encoding="utf-8")
    assert models("verify") == 1
    told = capsys.readouterr().out
    assert "ok  zero" in told
    assert "bad torn" in told
    assert "torn.toml is not a TOML file" in told


def test_pull_fetches_shows_and_says_where(
    models: Call, mine: Path, data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "one", data, mirrors=(ADDRESS,))
    serve(monkeypatch, lambda _: httpx.Response(200, content=data))
    assert models("pull", "one") == 0
    told = capsys.readouterr()
    assert f"one: {mine / 'one.onnx'} (fetched)" in told.out
    assert "100%" in told.err
    assert models("verify") == 0
    assert models("pull", "one") == 0
    assert "was already here" in capsys.readouterr().out


def test_one_that_fails_does_not_keep_the_others_from_coming(
    models: Call, mine: Path, data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two", "three"):
        write_card(mine, name, data, mirrors=(f"https://models.example/{name}",))
    serve(
        monkeypatch, lambda asked: httpx.Response(200, content=data) if "two" in str(asked.url) else httpx.Response(404)
    )
    assert models("pull", "one", "two", "three") == 4
    told = capsys.readouterr()
    assert "two.onnx (fetched)" in told.out
    assert "three: three.onnx could not be fetched: models.example answers 404" in told.err
    assert "error: 2 of 3 models are not here: one, three\n" in told.err


@pytest.mark.usefixtures("nobody")
def test_a_licence_needs_a_person_or_the_flag(
    models: Call, mine: Path, data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "one", data, mirrors=(ADDRESS,), licence="Research", commercial_use=False)
    serve(monkeypatch, lambda _: httpx.Response(200, content=data))
    assert models("pull", "one") == 4
    told = capsys.readouterr().err
    assert "Research, given by Somebody" in told
    assert "https://terms.example/" in told
    assert told.endswith("try: add --accept-licence if you accept it\n")
    assert models("pull", "one", "--accept-licence") == 0
    assert store.find(load_card("one"))


@pytest.mark.usefixtures("nobody")
def test_a_maker_without_a_licence_is_said_to_state_none(
    models: Call, mine: Path, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = write_card(mine, "one", data, licence=NOT_STATED, commercial_use=False)
    card.write_text(card.read_text("utf-8").replace("https://terms.example/", "ask its maker"), "utf-8")
    assert models("add", tmp_path / "source.onnx") == 4
    told = capsys.readouterr().err
    assert "one: its maker states no licence (Somebody).\nWithout one you may do no more than the law allows." in told
    assert "forbids" not in told
    assert "terms" not in told


def test_a_file_that_is_not_published_is_told_before_it_is_confirmed_and_ever_after(
    models: Call, mine: Path, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = "".join(
        f'\n[[copies]]\nsize_bytes = {size}\nsha256 = "{size:064x}"\n' for size in (554_300_000, 554_300_001)
    )
    card = write_card(mine, "one")
    card.write_text(card.read_text("utf-8") + copies, "utf-8")
    assert models("add", tmp_path / "source.onnx", "--as", "one", "--yes") == 0
    asked = capsys.readouterr().err
    assert "This is NONE of the 2 published files of one (554.3 MB expected, 0.0 MB given)" in asked
    assert models("verify", "one") == 0
    assert capsys.readouterr().out == f"ok  one  {mine / 'one.onnx'}  (confirmed by you, not a published file)\n"
    assert models("list", "--family", "small") == 0
    listed = capsys.readouterr().out
    assert "0.0 MB  yours*" in listed
    assert "* confirmed by you" in listed
    write_card(mine, "far", data)
    assert models("list", "--here") == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert names == ["face_landmark", "one", "face_detection_short_range"]


@pytest.mark.usefixtures("nobody")
def test_an_unknown_file_needs_a_person_or_the_flag(models: Call, mine: Path, data: bytes, tmp_path: Path) -> None:
    write_card(mine, "one")
    assert models("add", tmp_path / "source.onnx", "--as", "one") == 4
    assert models("add", tmp_path / "source.onnx", "--yes", "--as", "one") == 0
    assert store.find(load_card("one")).read_bytes() == data


def test_add_says_what_it_took_a_file_for(
    models: Call, mine: Path, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "one", data)
    assert models("add", tmp_path / "source.onnx") == 0
    assert "one.onnx (its sha256 is the one on the card)" in capsys.readouterr().out
    assert models("add", tmp_path / "source.onnx", "--move", "--link") == 2
    (tmp_path / "swap.pth").write_bytes(b"\x80\x04")
    assert models("add", tmp_path / "swap.pth") == 4
    told = capsys.readouterr().err
    assert told.splitlines()[-2].startswith("error: ")
    assert told.splitlines()[-1].startswith("try: export the model to ONNX")


def test_verify_lists_each_and_fails_where_one_is_bad(
    models: Call, mine: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad"):
        write_card(mine, name, data)
        (mine / f"{name}.onnx").write_bytes(data)
    assert models("verify") == 0
    (mine / "bad.onnx").write_bytes(bytes(len(data)))
    write_card(mine, "absent", data)
    capsys.readouterr()
    assert models("verify") == 1
    told = capsys.readouterr().out
    assert "ok  good" in told
    assert "bad bad" in told
    assert "has sha256" in told
    assert "absent" not in told
    assert models("verify", "absent") == 1
    assert "is not here" in capsys.readouterr().out


def test_where_prints_the_folder(models: Call, mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("where") == 0
    assert capsys.readouterr().out == f"{mine}\n"


PULL = """
import sys
from engines.card import NOT_STATED, load_card
from engines.store.http import open_client
from engines.store.pull import pull
from tests.owner import ScriptedOwner
owner = ScriptedOwner()
with open_client(frozenset({"http"})) as client:
    print(pull(load_card("one"), owner, owner, client, [sys.argv[1]]).how)
"""


def test_a_download_that_is_killed_goes_on(mine: Path) -> None:
    data = bytes(range(256)) * 20_000
    write_card(mine, "one", data)
    part, half = mine / "one.onnx.part", len(data) // 2
    command = [sys.executable, "-c", PULL]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Mirror() as mirror:
        resource = Resource(data, silent_after=half)
        address = mirror.offer("one", resource)
        process = subprocess.Popen([*command, address], env=environment)
        deadline = time.monotonic() + GIVE_UP_S
        while not part.exists() or not part.stat().st_size:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait(GIVE_UP_S)
        kept = part.stat().st_size
        assert not (mine / "one.onnx").exists()
        assert data.startswith(part.read_bytes())
        resource.silent_after = -1
        done = subprocess.run(
            [*command, address], env=environment, capture_output=True, text=True, timeout=GIVE_UP_S, check=True
        )
        assert done.stdout == "fetched\n"  # the lock ended with the process that held it
        assert resource.asked[-1] == (f"bytes={kept}-", '"one"')
    assert store.find(load_card("one")).read_bytes() == data
    assert not part.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
def test_a_person_at_a_terminal_is_asked(mine: Path, data: bytes, tmp_path: Path) -> None:
    write_card(mine, "one", licence="Research", commercial_use=False)
    code = "from realtime.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "TERM": "dumb"}

    def answer(*answers: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", code, "models", "add", str(tmp_path / "source.onnx"), "--as", "one"],
            env=environment,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(ours, "".join(f"{each}\n" for each in answers).encode())
        _, said = process.communicate(timeout=GIVE_UP_S)
        os.close(ours)
        os.close(theirs)
        return process.returncode, said

    code_no, said_no = answer("n")
    assert code_no == 4
    assert "It forbids commercial use." in said_no
    assert not records.read().licences
    code_yes, said_yes = answer("y", "y")
    assert code_yes == 0, said_yes
    assert "Nobody has published the sha256 of one;" in said_yes
    assert store.find(load_card("one")).read_bytes() == data
    again = [sys.executable, "-c", code, "models", "verify", "one"]
    told = subprocess.run(again, env=environment, capture_output=True, text=True, check=True).stdout
    assert told.endswith("(confirmed by you, not a published file)\n")


def test_an_interrupted_pull_says_that_the_next_goes_on(
    models: Call, mine: Path, data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "one", data, mirrors=(ADDRESS,))

    def stop(_: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    serve(monkeypatch, stop)
    assert models("pull", "one") == 130
    assert "the next `doppelcam models pull one` goes on" in capsys.readouterr().err


@pytest.mark.usefixtures("nobody")
def test_nothing_is_fetched_that_nobody_could_confirm(
    models: Call, mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_card(mine, "one", mirrors=(ADDRESS,))
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(404)

    serve(monkeypatch, answer)
    assert models("pull", "one") == 4
    assert not asked
    assert capsys.readouterr().err.endswith("try: add --yes if you trust where it is from\n")
