"""Pulling: who is asked, what is kept, and that nothing wrong is ever under the final name."""

from __future__ import annotations

import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import httpx
import pytest

from engines import store
from engines.card import load_card
from engines.errors import ModelError, install_extra
from engines.store import records
from engines.store.http import open_client
from engines.store.lock import alone
from engines.store.pack import RELEASES
from engines.store.pull import pull
from tests.mirror import Mirror, Resource
from tests.own_models import write_card, write_onnx
from tests.owner import ScriptedOwner


@pytest.fixture(scope="module")
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with open_client(frozenset({"http"})) as opened:
        yield opened


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    monkeypatch.delenv("DOPPELCAM_OFFLINE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # where InsightFace keeps its own
    return folder


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return write_onnx(tmp_path / "source.onnx").read_bytes()


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".") and path.suffix != ".toml"}


def test_a_model_is_fetched_once(mine: Path, mirror: Mirror, client: httpx.Client, data: bytes) -> None:
    write_card(mine, "one", data)
    card, owner, resource = load_card("one"), ScriptedOwner(), Resource(data)
    address = mirror.offer("one", resource)
    assert pull(card, owner, owner, client, [address]).how == "fetched"
    assert visible(mine) == {"one.onnx"}
    assert store.find(card).read_bytes() == data
    assert pull(card, owner, owner, client, [address]).how == "was already here"
    assert len(resource.asked) == 1
    assert owner.asked == []


def test_what_an_offline_folder_has_is_not_fetched(
    tmp_path: Path, mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(mine, "one", data)
    (tmp_path / "stick").mkdir()
    (tmp_path / "stick" / "one.onnx").write_bytes(data)
    monkeypatch.setenv("DOPPELCAM_OFFLINE", str(tmp_path / "stick"))
    got = pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client, ["http://127.0.0.1:1/never"])
    assert (got.how, got.path.parent) == ("was already here", tmp_path / "stick")


def test_an_embedded_model_is_here(mine: Path, client: httpx.Client) -> None:
    got = pull(load_card("face_landmark"), ScriptedOwner(), ScriptedOwner(), client)
    assert got.how == "is part of the program"


def test_a_damaged_file_is_replaced_and_told(mine: Path, mirror: Mirror, client: httpx.Client, data: bytes) -> None:
    write_card(mine, "one", data)
    (mine / "one.onnx").write_bytes(b"damaged")
    owner = ScriptedOwner()
    pull(load_card("one"), owner, owner, client, [mirror.offer("one", Resource(data))])
    assert store.find(load_card("one")).read_bytes() == data
    assert "has 7 bytes" in owner.heard[0]


def test_a_wrong_file_never_gets_the_name(mine: Path, mirror: Mirror, client: httpx.Client, data: bytes) -> None:
    write_card(mine, "one", data)
    wrong = bytes(reversed(data))
    with pytest.raises(ModelError, match="sent a file with sha256"):
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client, [mirror.offer("w", Resource(wrong))])
    assert visible(mine) == set()


def test_a_licence_is_asked_for_before_anything_is_fetched(
    mine: Path, mirror: Mirror, client: httpx.Client, data: bytes
) -> None:
    for name in ("one", "two"):
        write_card(mine, name, data, licence="Research", commercial_use=False)
    resource = Resource(data)
    address = mirror.offer("licensed", resource)
    no, yes = ScriptedOwner(accept=False), ScriptedOwner()
    with pytest.raises(ModelError, match="was not accepted"):
        pull(load_card("one"), no, no, client, [address])
    assert resource.asked == []
    pull(load_card("one"), yes, yes, client, [address])
    pull(load_card("two"), yes, yes, client, [address])
    assert yes.asked == ["licence"]  # once, for both


def test_a_file_without_a_known_hash_is_shown_and_then_demanded(
    mine: Path, mirror: Mirror, client: httpx.Client, data: bytes
) -> None:
    write_card(mine, "one")
    card, owner, address = load_card("one"), ScriptedOwner(trust=False), mirror.offer("unknown", Resource(data))
    with pytest.raises(ModelError, match="not confirmed and is not kept"):
        pull(card, owner, owner, client, [address])
    assert visible(mine) == set()
    owner.trust = True
    pull(card, owner, owner, client, [address])
    assert owner.asked == ["will be asked", "file"] * 2
    assert store.find(card).read_bytes() == data
    (mine / "one.onnx").write_bytes(bytes(len(data)))
    with pytest.raises(ModelError, match="has sha256"):
        store.find(card)


def test_a_file_that_its_owner_put_there_is_not_pulled_over(mine: Path, client: httpx.Client) -> None:
    write_card(mine, "one")
    (mine / "one.onnx").write_bytes(b"precious")
    with pytest.raises(ModelError, match="you have not confirmed") as caught:
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client, ["http://127.0.0.1:1/never"])
    assert "models add" in caught.value.hint
    assert (mine / "one.onnx").read_bytes() == b"precious"


def test_what_arrives_without_a_hash_must_have_the_tensors_of_the_card(
    tmp_path: Path, mine: Path, mirror: Mirror, client: httpx.Client
) -> None:
    write_card(mine, "one", side=8)
    other = write_onnx(tmp_path / "other.onnx", side=16).read_bytes()
    owner = ScriptedOwner()
    with pytest.raises(ModelError, match=r"what arrived is not one: .*8, 8"):
        pull(load_card("one"), owner, owner, client, [mirror.offer("other", Resource(other))])
    assert visible(mine) == set()
    assert owner.asked == ["will be asked"]


def test_a_model_without_an_address_says_where_its_maker_has_it(mine: Path, client: httpx.Client) -> None:
    write_card(mine, "one", b"x")
    with pytest.raises(ModelError, match="no address") as caught:
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client)
    assert "a page of its maker" in caught.value.hint
    assert "doppelcam models add FILE" in caught.value.hint


def test_only_one_at_a_time(mine: Path, mirror: Mirror, client: httpx.Client, data: bytes) -> None:
    write_card(mine, "one", data)
    (mine / "one.onnx.part").write_bytes(data[:10])
    with alone(mine / "one.onnx"), pytest.raises(ModelError, match="another doppelcam is fetching"):
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client, [mirror.offer("one", Resource(data))])
    assert (mine / "one.onnx.part").read_bytes() == data[:10]


def test_what_another_process_brought_meanwhile_is_not_fetched_again(
    mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(mine, "one", data)

    @contextmanager
    def late(path: Path) -> Iterator[None]:
        path.write_bytes(data)
        yield

    monkeypatch.setattr("engines.store.pull.alone", late)
    got = pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client, ["http://127.0.0.1:1/never"])
    assert got.how == "was already here"


def test_many_at_once_leave_one_good_file(mine: Path, mirror: Mirror, data: bytes) -> None:
    write_card(mine, "one", data)
    address, card, said = mirror.offer("many", Resource(data)), load_card("one"), []

    def one() -> None:
        owner = ScriptedOwner()
        try:
            with open_client(frozenset({"http"})) as client:
                said.append(pull(card, owner, owner, client, [address]).how)
        except ModelError as error:
            said.append(error.message)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count("fetched") == 1
    others = {"was already here", "another doppelcam is fetching one.onnx right now"}
    assert set(said) - {"fetched"} <= others
    assert store.find(card).read_bytes() == data


def test_a_decision_waits_for_another_one(mine: Path) -> None:
    mine.mkdir()
    write_card(mine, "one", licence="Research", commercial_use=False)
    licence = load_card("one").licence
    with ExitStack() as held:
        held.enter_context(alone(mine / "known.json"))
        thread = threading.Thread(target=records.accept, args=(licence,))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join()
    assert records.is_accepted(licence)


Downloader = Callable[..., str]


def install(monkeypatch: pytest.MonkeyPatch, downloader: Downloader) -> None:
    module = ModuleType("insightface.utils.storage")
    module.ensure_available = downloader  # type: ignore[attr-defined]  # as in the package
    for name in ("insightface", "insightface.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "insightface.utils.storage", module)


def test_a_pack_gives_every_file_that_is_on_a_card(
    tmp_path: Path, mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = write_onnx(tmp_path / "second.onnx", seed="second").read_bytes()
    write_card(mine, "one", data, file="in_pack.onnx", pack="buffalo_x")
    write_card(mine, "two", second, file="two.onnx", pack="buffalo_x")  # found by its hash
    write_card(mine, "three", pack="buffalo_x", file="three.onnx")  # its hash is not known: not taken unasked
    fetched = []

    def ensure_available(sub_dir: str, name: str, root: str) -> str:
        folder = Path(root) / sub_dir / name / name  # packs are nested so
        folder.mkdir(parents=True)
        for file, content in (("in_pack.onnx", data), ("other_name.onnx", second), ("three.onnx", data)):
            (folder / file).write_bytes(content)
        fetched.append(name)
        return str(folder.parent)

    install(monkeypatch, ensure_available)
    owner = ScriptedOwner()
    assert pull(load_card("one"), owner, owner, client).how == "fetched"
    assert visible(mine) == {"in_pack.onnx", "two.onnx"}
    assert store.find(load_card("one")).read_bytes() == data
    assert pull(load_card("two"), owner, owner, client).how == "was already here"
    assert fetched == ["buffalo_x"]
    assert not (mine / ".buffalo_x.unpacked").exists()
    assert owner.asked == []


@pytest.mark.parametrize("trouble", ["a card that cannot be read", "a rival", "no room for it"])
def test_what_else_is_in_a_pack_never_spoils_what_was_asked_for(
    mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    second = data + b"\x00"
    write_card(mine, "one", data, pack="buffalo_x")
    write_card(mine, "two", second, pack="buffalo_x")

    def ensure_available(sub_dir: str, name: str, root: str) -> str:
        (Path(root) / "one.onnx").write_bytes(data)
        (Path(root) / "two.onnx").write_bytes(second)
        return root

    install(monkeypatch, ensure_available)
    owner = ScriptedOwner()
    with ExitStack() as stack:
        if trouble == "a rival":
            stack.enter_context(alone(mine / "two.onnx"))
        elif trouble == "no room for it":
            monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**26 + len(data)))
        else:
            (mine / "torn.toml").write_text("name = ", encoding="utf-8")
        assert pull(load_card("one"), owner, owner, client).how == "fetched"
    assert store.find(load_card("one")).read_bytes() == data
    assert any(said in " ".join(owner.heard) for said in ("torn.toml", "another doppelcam", "no room"))


def test_what_insightface_has_fetched_for_itself_is_used(
    tmp_path: Path, mine: Path, client: httpx.Client, data: bytes
) -> None:
    own = tmp_path / ".insightface" / "models" / "buffalo_x"
    own.mkdir(parents=True)
    (own / "one.onnx").write_bytes(data)
    write_card(mine, "one", data, pack="buffalo_x")
    assert pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client).how == "fetched"
    assert (own / "one.onnx").exists()


def test_what_insightface_has_only_half_is_fetched(
    tmp_path: Path, mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / ".insightface" / "models" / "buffalo_x"
    own.mkdir(parents=True)
    (own / "one.onnx").write_bytes(data[:20])

    def ensure_available(sub_dir: str, name: str, root: str) -> str:
        (Path(root) / "one.onnx").write_bytes(data)
        return root

    install(monkeypatch, ensure_available)
    write_card(mine, "one", data, pack="buffalo_x")
    pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client)
    assert store.find(load_card("one")).read_bytes() == data


def test_without_the_package_the_hint_installs_it(
    mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "insightface", None)
    monkeypatch.setitem(sys.modules, "insightface.utils.storage", None)
    write_card(mine, "one", data, pack="buffalo_x")
    with pytest.raises(ModelError) as caught:
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client)
    assert caught.value.hint.startswith(f"{install_extra('neural')}; or fetch {RELEASES}buffalo_x.zip with a browser")


def test_the_address_for_a_browser_is_the_packages() -> None:
    storage = pytest.importorskip("insightface.utils.storage")
    assert storage.model_zoo_download_url("buffalo_l.zip") == f"{RELEASES}buffalo_l.zip"


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (RuntimeError("Failed downloading url x"), "cannot be fetched: Failed"),
        (zipfile.BadZipFile("File is not a zip file"), "arrived damaged"),
        (OSError("no route to host"), "cannot be fetched: no route"),
        (OSError(28, "No space left on device"), "the disk is full"),
    ],
)
def test_a_pack_that_does_not_come_leaves_nothing(
    mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch, trouble: Exception, said: str
) -> None:
    def fail(sub_dir: str, name: str, root: str) -> str:
        (Path(root) / "half.zip").write_bytes(b"half")
        raise trouble

    install(monkeypatch, fail)
    write_card(mine, "one", data, pack="buffalo_x")
    with pytest.raises(ModelError, match=said):
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client)
    assert visible(mine) == set()
    assert not list(mine.glob(".buffalo*"))


@pytest.mark.parametrize(
    ("file", "said"), [("one.onnx", "has no one.onnx with sha256 .*, only one.onnx"), ("two.onnx", "only two.onnx")]
)
def test_a_pack_with_another_file_is_told(
    mine: Path, client: httpx.Client, data: bytes, monkeypatch: pytest.MonkeyPatch, file: str, said: str
) -> None:
    def ensure_available(sub_dir: str, name: str, root: str) -> str:
        (Path(root) / file).write_bytes(b"another")
        return root

    install(monkeypatch, ensure_available)
    write_card(mine, "one", data, pack="buffalo_x")
    with pytest.raises(ModelError, match=said):
        pull(load_card("one"), ScriptedOwner(), ScriptedOwner(), client)
    assert visible(mine) == set()
