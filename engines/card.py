"""Reads a model card (TOML) into frozen values; knows what every card must say, not what a model is for."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config

from engines.contract import TensorSpec
from engines.errors import ModelError
from engines.folders import SHIPPED_CARDS, card_folders
from engines.sizes import Sizes, words

FOLDER = SHIPPED_CARDS
"""Where the cards lie that come with the program."""

MOST_PX = 4096
"""Largest side of a picture that a card may state: twice that of the largest network in use."""
_MOST = 1e6
"""Of a mean, of a scale, and of what a scale divides by: pixels and their normalised values stay far inside float32."""

NOT_STATED = "not stated"
"""Name of a licence where its maker states none."""

T = TypeVar("T")
_STRICT = ConfigDict(extra="forbid")
_MODEL_FILE = r"^\w[\w.-]*\.(onnx|tflite|dfm)$"
"""A plain name with an ending that no record and no card has: the store writes and deletes what a card names."""
_MOST_LETTERS = 60
"""Of the name of a file: with what the store adds, it fits into the 255 bytes of file systems in any script."""
_PACK = r"^(\w[\w.-]*)?$"
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _only_known_keys(table: object) -> object:
    """Refuse a key that no tensor has: ``TensorSpec`` belongs to the contract, which knows nothing of cards."""
    if isinstance(table, dict) and (unknown := set(table) - {f.name for f in fields(TensorSpec)}):
        raise ValueError(f"unknown key {', '.join(sorted(unknown))}")
    return table


def _possible(spec: TensorSpec) -> TensorSpec:
    """Refuse a tensor that no file has."""
    if any(n < 1 and n != -1 for n in spec.shape):
        raise ValueError("an axis is at least 1, or -1 where it is free")
    return spec


def _whole_picture(spec: TensorSpec) -> TensorSpec:
    """Refuse a picture that is not described completely, or whose pixels could not be computed in float32."""
    if spec.colour == "none":
        return spec
    if len(spec.mean) != 3 or len(spec.scale) != 3:
        raise ValueError("mean and scale of a picture need 3 numbers each")
    channels = {"NHWC": 3, "NCHW": 1}.get(spec.layout)
    if channels is None or len(spec.shape) != 4 or spec.shape[channels] != 3:
        raise ValueError("the shape of a picture is [1, H, W, 3] for NHWC and [1, 3, H, W] for NCHW")
    if not all(abs(mean) < _MOST and 1 / _MOST < abs(scale) < _MOST for mean in spec.mean for scale in spec.scale):
        raise ValueError(f"mean and scale of a picture must be numbers below {_MOST:.0e}, and scale not nearly 0")
    width, height = spec.size
    if max(height, width) > MOST_PX:
        raise ValueError(f"a picture of {width}x{height} is larger than {MOST_PX}x{MOST_PX}, which no network takes")
    return spec


def _in_order(sizes: Sizes) -> Sizes:
    """Refuse a range that is none."""
    if not all(1 <= low <= mid <= high <= MOST_PX for low, mid, high in zip(*sizes.corners, strict=True)):
        raise ValueError(
            f"of the sizes {sizes}, best {words(sizes.best)}, each must be at least the one before, up to {MOST_PX}"
        )
    return sizes


_Tensor = Annotated[
    TensorSpec, BeforeValidator(_only_known_keys), AfterValidator(_possible), AfterValidator(_whole_picture)
]


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Licence:
    """What a model may be used for, as its maker states it.

    Attributes:
        name: SPDX name, or the maker's own words; :data:`NOT_STATED` where there is none.
        holder: who gives it.
        commercial_use: whether it may earn money. Where it may not, the licence has to be accepted once.
        origin: where the file was taken from.
        terms: address of the full text; empty where its maker gives none.
    """

    name: str
    holder: str
    commercial_use: bool
    origin: str
    terms: str = ""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Copy:
    """Another file with the same contract: a conversion or an edition that people have.

    Attributes:
        size_bytes: of the file; 0 where nobody said.
        sha256: of the file, lower-case hexadecimal.
        note: what is different about it, for people.
    """

    size_bytes: int
    sha256: _Hash
    note: str = ""


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model: its file, what it may be used for, and its tensor contract.

    Attributes:
        name: of the card and its TOML file, e.g. "face_landmark".
        file: name of the model file, without a folder; it ends with .onnx, .tflite or .dfm.
        size_bytes: of the file; 0 where nobody said.
        sha256: of the file, lower-case hexadecimal; empty where nobody said. Such a file is only used once its owner
            has confirmed it, see ``engines.store``.
        family: name of the decoder that reads its outputs, e.g. "ssd".
        runtimes: names (table in ``engines.registry``) of the runtimes that can serve it, best first.
        licence: what it may be used for.
        inputs: in call order.
        outputs: in the order that its decoder reads them.
        copies: other files that are as good.
        mirrors: addresses of the file, https, best first; empty where it cannot be fetched.
        pack: name of the InsightFace pack that holds the file, e.g. "buffalo_l"; empty where none does.
        sizes: of the pictures that one compiled engine shall serve, where the input leaves them free; None where one is
            compiled for a single size.
        decode: the numbers that its decoder needs; read with :func:`decode_as` by the code that knows the family.
    """

    name: str
    file: Annotated[str, Field(pattern=_MODEL_FILE, max_length=_MOST_LETTERS)]
    size_bytes: int
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    family: str
    runtimes: Annotated[tuple[str, ...], Field(min_length=1)]
    licence: Licence
    inputs: Annotated[tuple[_Tensor, ...], Field(min_length=1)]
    outputs: tuple[_Tensor, ...]
    copies: tuple[Copy, ...] = ()
    mirrors: tuple[Annotated[str, Field(pattern=r"^https://")], ...] = ()
    pack: Annotated[str, Field(pattern=_PACK)] = ""
    sizes: Annotated[Sizes, AfterValidator(_in_order)] | None = None
    decode: Mapping[str, Any] = field(default_factory=dict)


def names(folder: Path | None = None) -> tuple[str, ...]:
    """List the cards there are.

    Args:
        folder: where to look; by default among the cards that come with the program and the user's own.

    Returns:
        Their names, sorted. A card that is listed may still be wrong: :func:`load_card` says so.
    """
    folders = card_folders() if folder is None else (folder,)
    return tuple(sorted({path.stem for place in folders for path in place.glob("*.toml") if path.is_file()}))


def load_card(name: str, folder: Path | None = None) -> ModelCard:
    """Read a card.

    Args:
        name: of the card.
        folder: where ``<name>.toml`` lies; by default among the cards that come with the program or the user's own.

    Returns:
        The card.

    Raises:
        ModelError: there is no such card, a user's card has the name of one that comes with the program, it cannot be
            read, it is no TOML, or a key is missing, unknown or of a wrong type or value; the message names the file
            and the key.
    """
    folders = card_folders() if folder is None else (folder,)
    known = names(folder)
    found = [path for place in folders if name in known and (path := place / f"{name}.toml").is_file()]
    if not found:
        close = ", ".join(difflib.get_close_matches(name, known))
        hint = f"use one of: {close}" if close else f"see which of the {len(known)} you mean: doppelcam models list"
        raise ModelError(f"no model card {name!r} in {' or '.join(map(str, folders))}", hint)
    if len(found) > 1:
        raise ModelError(
            f"{found[1]} has the name of a card that comes with the program", "rename it, and the name inside it"
        )
    path = found[0]
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"{path} is not a TOML file: {error}", "correct the line named above") from error
    card = _validate(ModelCard, table, str(path))
    if card.name != name:
        raise ModelError(f"{path}: name: the card calls itself {card.name!r}", f"write name = {name!r}")
    return card


def decode_as(card: ModelCard, kind: type[T]) -> T:
    """Read a card's ``[decode]`` table into the dataclass of its family.

    Args:
        card: the card.
        kind: a dataclass with one field for each key.

    Returns:
        The values.

    Raises:
        ModelError: a key is missing, unknown or of the wrong type.
    """
    return _validate(kind, dict(card.decode), f"[decode] of model card {card.name!r}")


@cache
def _reader(kind: type[T]) -> TypeAdapter[T]:
    """What reads tables into a dataclass; to make one takes longer than to read a card with it."""
    return TypeAdapter(kind)


def _validate(kind: type[T], table: dict[str, Any], where: str) -> T:
    try:
        return _reader(kind).validate_python(table)  # type: ignore[arg-type]  # a class is hashable
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "(top)"
        raise ModelError(
            f"{where}: {key}: {first['msg'].removeprefix('Value error, ')}", "correct this key of the card"
        ) from error
