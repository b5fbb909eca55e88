"""Fetching from a real server on this machine that cuts, lies, stalls and forgets."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import ModelError
from engines.store import disk
from engines.store.download import TRIES, Wanted, fetch
from engines.store.http import open_client
from tests.mirror import Mirror, Resource
from tests.owner import ScriptedOwner

DATA = bytes(range(256)) * 4000
OTHER = bytes(reversed(DATA))
HASH = sha256(DATA).hexdigest()
KNOWN = {HASH: len(DATA)}


@pytest.fixture(scope="module")
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with open_client(frozenset({"http"})) as opened:
        yield opened


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    return Wanted(tmp_path / "m.onnx", len(DATA), KNOWN)


def get(wanted: Wanted, client: httpx.Client, *addresses: str, owner: ScriptedOwner | None = None) -> bytes:
    return fetch(wanted, addresses, client, owner or ScriptedOwner(), pause=lambda _: None).read_bytes()


def begin(wanted: Wanted, data: bytes, address: str, validator: str) -> None:
    wanted.part.write_bytes(data)
    wanted.note.write_text(json.dumps({"address": address, "validator": validator}))


def test_a_file_arrives_whole_and_its_progress_is_told(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    owner = ScriptedOwner()
    assert get(wanted, client, mirror.offer("good", Resource(DATA)), owner=owner) == DATA
    assert not wanted.path.exists()  # its name is given by whoever proves it
    assert owner.seen[0] == (0, len(DATA))
    assert owner.seen[-1] == (len(DATA), len(DATA))
    assert owner.heard == []


def test_a_cut_transfer_goes_on_where_it_stopped(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    resource = Resource(DATA, cuts=[300_000, 300_000])
    assert get(wanted, client, mirror.offer("cut", resource)) == DATA
    assert [wish for wish, _ in resource.asked] == ["", "bytes=300000-", "bytes=600000-"]
    assert resource.asked[1][1] == '"one"'


@given(cuts=st.lists(st.integers(1, len(DATA) // 2), max_size=6), ranges=st.booleans())
def test_whatever_the_cuts_the_result_is_the_file(
    mirror: Mirror, client: httpx.Client, tmp_path_factory: pytest.TempPathFactory, cuts: list[int], ranges: bool
) -> None:
    wanted = Wanted(tmp_path_factory.mktemp("cuts") / "m.onnx", len(DATA), KNOWN)
    address = mirror.offer("any", Resource(DATA, ranges=ranges, cuts=list(cuts)))
    try:
        assert get(wanted, client, address) == DATA
    except ModelError:  # a server without ranges that cuts again and again earlier than before
        assert not ranges
        assert DATA.startswith(wanted.part.read_bytes())


def test_a_later_run_goes_on_too(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    resource = Resource(DATA)
    address = mirror.offer("later", resource)
    begin(wanted, DATA[:1000], address, '"one"')
    assert get(wanted, client, address) == DATA
    assert resource.asked == [("bytes=1000-", '"one"')]


def test_a_complete_part_is_not_asked_for_again(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    resource = Resource(DATA)
    wanted.part.write_bytes(DATA)
    assert get(wanted, client, mirror.offer("complete", resource)) == DATA
    assert resource.asked == []


def test_a_complete_part_of_unknown_size_is_known_by_the_server(
    mirror: Mirror, client: httpx.Client, tmp_path: Path
) -> None:
    wanted = Wanted(tmp_path / "m.onnx", 0, {})
    resource = Resource(DATA)
    address = mirror.offer("complete-unknown", resource)
    begin(wanted, DATA, address, '"one"')
    assert get(wanted, client, address) == DATA
    assert resource.asked == [(f"bytes={len(DATA)}-", '"one"')]


@pytest.mark.parametrize(
    ("resource", "part"),
    [
        (Resource(DATA, ranges=False), DATA[:1000]),
        (Resource(DATA, etag='"two"'), OTHER[:1000]),
        (Resource(DATA), DATA + b"more"),
        (Resource(DATA), OTHER[:1000]),
    ],
    ids=["no ranges", "the file changed", "more than the file", "bytes of another file"],
)
def test_it_starts_again(mirror: Mirror, client: httpx.Client, wanted: Wanted, resource: Resource, part: bytes) -> None:
    address = mirror.offer("again", resource)
    begin(wanted, part, address, '"one"')
    owner = ScriptedOwner()
    assert get(wanted, client, address, owner=owner) == DATA
    assert owner.heard  # and says so


def test_without_a_hash_nothing_is_added_to_bytes_of_another_address(
    mirror: Mirror, client: httpx.Client, tmp_path: Path
) -> None:
    wanted = Wanted(tmp_path / "m.onnx", 0, {})
    resource = Resource(DATA)
    begin(wanted, OTHER[:1000], "http://127.0.0.1/elsewhere", '"one"')
    assert get(wanted, client, mirror.offer("unproven", resource)) == DATA
    assert resource.asked == [("", "")]


def test_with_a_hash_the_next_mirror_goes_on(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    second = Resource(DATA, etag='"its own"')
    first = mirror.offer("first", Resource(DATA, cuts=[5000] + [0] * TRIES))
    assert get(wanted, client, first, mirror.offer("second", second)) == DATA
    assert second.asked == [("bytes=5000-", "")]


def test_every_mirror_is_named_with_its_reason(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    addresses = [
        mirror.offer("404", Resource(b"no such file", status=404)),
        mirror.offer("503", Resource(b"", status=503)),
        mirror.offer("packed", Resource(DATA, encoding="gzip")),
        mirror.offer("short", Resource(DATA[:-1])),
        mirror.offer("wrong", Resource(OTHER)),
        "http://127.0.0.1:1/nobody",
    ]
    owner = ScriptedOwner()
    with pytest.raises(ModelError) as caught:
        get(wanted, client, *addresses, owner=owner)
    said = " ".join(owner.heard)
    for reason in (
        "answers 404",
        "answers 503",
        "sends the file packed (gzip)",
        f"has {len(DATA) - 1} bytes, its card says {len(DATA)}",
        f"sent a file with sha256 {sha256(OTHER).hexdigest()}, which its card does not name",
        "refused",
    ):
        assert reason in said
    assert not wanted.part.exists()  # the wrong one is not kept
    assert len(owner.heard) == len(set(owner.heard))
    assert caught.value.message == "m.onnx could not be fetched: 127.0.0.1 answers 404 Not Found"
    assert f"fetch {addresses[0]} with a browser, then: doppelcam models add FILE" in caught.value.hint


def test_a_failed_download_is_no_wall_of_text(wanted: Wanted) -> None:
    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"[Errno -3] Temporary failure in name resolution of {request.url.host} " + "x" * 200)

    owner = ScriptedOwner()
    hosts = ("models.example", "files.example", "mirror.example")
    with open_client(transport=httpx.MockTransport(nobody)) as client, pytest.raises(ModelError) as caught:
        get(wanted, client, *(f"https://{host}/{name}" for host in hosts for name in "ab"), owner=owner)
    assert len(caught.value.message) <= 250
    assert [caught.value.message.count(f"{host} cannot be reached") for host in hosts] == [1, 1, 1]
    assert len(owner.heard) == 2 * len(hosts)  # that it is tried again, and that it failed


def test_a_mirror_that_works_after_others_failed_is_enough(
    mirror: Mirror, client: httpx.Client, wanted: Wanted
) -> None:
    addresses = [mirror.offer("gone", Resource(b"", status=410)), mirror.offer("fine", Resource(DATA))]
    owner = ScriptedOwner()
    assert get(wanted, client, *addresses, owner=owner) == DATA
    assert owner.heard == ["127.0.0.1 answers 410 Gone"]


@pytest.mark.parametrize("length", [-1, len(DATA) + 5], ids=["none", "too much"])
def test_a_wrong_length_is_found(mirror: Mirror, client: httpx.Client, wanted: Wanted, length: int) -> None:
    address = mirror.offer("length", Resource(DATA[:-7], length=length, ranges=False))
    with pytest.raises(ModelError, match=r"stopped after|has .* bytes"):
        get(wanted, client, address)
    assert not wanted.path.exists()


def test_more_than_the_file_is_not_taken(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    with pytest.raises(ModelError, match="sends more than"):
        get(wanted, client, mirror.offer("more", Resource(DATA + b"more", length=-1)))
    assert not wanted.part.exists()


def test_a_silent_server_is_given_up(mirror: Mirror, wanted: Wanted) -> None:
    address = mirror.offer("silent", Resource(DATA, silent_after=1000))
    with open_client(frozenset({"http"}), silence_s=0.05) as client, pytest.raises(ModelError, match="timed out"):
        get(wanted, client, address)
    assert wanted.part.read_bytes() == DATA[:1000]  # what came is kept: this server may speak again


def test_a_redirect_is_followed(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    there = mirror.offer("there", Resource(DATA))
    assert get(wanted, client, mirror.offer("here", Resource(b"", status=302, location=there))) == DATA


def test_a_redirect_away_from_https_is_not(wanted: Wanted) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"Location": "http://plain.example/m.onnx"})

    with (
        open_client(transport=httpx.MockTransport(answer)) as client,
        pytest.raises(ModelError, match=r"leads to http://plain\.example, which is not https"),
    ):
        get(wanted, client, "https://safe.example/m.onnx")


def test_a_client_for_people_never_asks_without_https(wanted: Wanted, mirror: Mirror) -> None:
    resource = Resource(DATA)
    with open_client() as client, pytest.raises(ModelError, match="which is not https"):
        get(wanted, client, mirror.offer("plain", resource))
    assert resource.asked == []


def test_a_redirect_in_a_circle_ends(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    resource = Resource(b"", status=302)
    resource.location = mirror.offer("circle", resource)
    with pytest.raises(ModelError, match="redirects"):
        get(wanted, client, resource.location)


def test_the_proxy_of_the_environment_is_asked(mirror: Mirror, wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    proxied = Resource(DATA)
    proxy = mirror.offer("", proxied).rstrip("/")
    mirror.resources["http://models.example/m.onnx"] = proxied  # a proxy is asked for the whole address
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with open_client(frozenset({"http"})) as client:
        assert get(wanted, client, "http://models.example/m.onnx") == DATA


def test_a_proxy_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://old")
    with pytest.raises(ModelError, match="proxy") as caught:
        open_client()
    assert "HTTPS_PROXY" in caught.value.hint


def test_too_little_room_is_found_before_anything_is_fetched(
    mirror: Mirror, client: httpx.Client, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=66_000_000))
    with pytest.raises(ModelError, match=r"no room for .*m\.onnx: 66 MB are free, 68 MB are needed") as caught:
        get(wanted, client, mirror.offer("roomy", Resource(DATA)))
    assert not wanted.part.exists()
    assert "larger disk" in caught.value.hint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_disk_that_fills_up_on_the_way_is_told(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    wanted.part.symlink_to("/dev/full")
    with pytest.raises(ModelError, match="the disk is full"):
        get(wanted, client, mirror.offer("full", Resource(DATA)))


def test_a_folder_that_cannot_be_written_is_told(
    mirror: Mirror, client: httpx.Client, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def refuse(path: Path, mode: str = "r", *args: object, **named: object) -> object:
        if path == wanted.part and mode != "rb":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, mode, *args, **named)  # type: ignore[call-overload]  # passed on as it came

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ModelError, match="Permission denied") as caught:
        get(wanted, client, mirror.offer("denied", Resource(DATA)))
    assert "DOPPELCAM_MODELS" in caught.value.hint


def test_a_torn_note_costs_a_restart_and_nothing_else(mirror: Mirror, client: httpx.Client, tmp_path: Path) -> None:
    wanted = Wanted(tmp_path / "m.onnx", 0, {})
    wanted.part.write_bytes(DATA[:1000])
    wanted.note.write_text('{"addr')
    assert get(wanted, client, mirror.offer("torn", Resource(DATA))) == DATA


def test_an_interrupt_keeps_what_came(mirror: Mirror, client: httpx.Client, wanted: Wanted) -> None:
    class Impatient(ScriptedOwner):
        def moved(self, done_bytes: int, total_bytes: int) -> None:
            if done_bytes:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(wanted, client, mirror.offer("stop", Resource(DATA)), owner=Impatient())
    kept = wanted.part.read_bytes()
    assert kept
    assert DATA.startswith(kept)


def test_a_weak_validator_is_not_trusted_with_ranges(mirror: Mirror, client: httpx.Client, tmp_path: Path) -> None:
    wanted = Wanted(tmp_path / "m.onnx", 0, {})
    resource = Resource(DATA, etag='W/"one"', cuts=[1000])
    assert get(wanted, client, mirror.offer("weak", resource)) == DATA
    assert resource.asked == [("", ""), ("", "")]


def scripted(*answers: httpx.Response) -> httpx.Client:
    """A client whose server gives these answers, one after the other, without HTTP's own checks of their lengths."""
    rest = iter(answers)
    return open_client(transport=httpx.MockTransport(lambda _: next(rest)))


class Stream(httpx.SyncByteStream):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks


def test_a_refused_range_without_a_size_starts_again_and_its_text_is_not_the_file(tmp_path: Path) -> None:
    wanted = Wanted(tmp_path / "m.onnx", 0, {})
    begin(wanted, DATA[:1000], "https://models.example/m", '"one"')
    with scripted(httpx.Response(416, content=b"no such range"), httpx.Response(200, content=DATA)) as client:
        assert get(wanted, client, "https://models.example/m") == DATA


def test_a_stream_without_end_is_left(wanted: Wanted) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(20):
            yield DATA
        raise AssertionError("more was read than the file has")

    with (
        scripted(httpx.Response(200, stream=Stream(endless()))) as client,
        pytest.raises(ModelError, match="more than"),
    ):
        get(wanted, client, "https://models.example/m")


def test_fewer_bytes_than_announced_are_not_the_file_even_where_nobody_knows_its_size(tmp_path: Path) -> None:
    wanted = Wanted(tmp_path / "m.onnx", 0, {})
    announced = {"Content-Length": str(len(DATA))}
    short = [httpx.Response(200, headers=announced, stream=Stream(iter([DATA[:10]]))) for _ in range(TRIES + 1)]
    with scripted(*short) as client, pytest.raises(ModelError, match=f"stopped after 10 of {len(DATA)} bytes"):
        get(wanted, client, "https://models.example/m")


def test_the_name_is_given_in_one_step(wanted: Wanted) -> None:
    wanted.part.write_bytes(DATA)
    same = wanted.part.stat().st_ino
    disk.commit(wanted.part, wanted.path)
    assert wanted.path.stat().st_ino == same  # renamed, never copied: nobody can see half of it
    assert not wanted.part.exists()
