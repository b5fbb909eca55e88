"""Small ONNX files and the cards that a person would write for them; knows the format of both, not the store."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import onnx
from onnx import TensorProto, helper

CARD = """
name = "{name}"
file = "{file}"
size_bytes = {size_bytes}
sha256 = "{sha256}"
family = "{family}"
runtimes = ["onnxrt"]
mirrors = [{mirrors}]
pack = "{pack}"

[licence]
name = "{licence}"
holder = "Somebody"
commercial_use = {commercial_use}
origin = "a page of its maker"
terms = "https://terms.example/"

[[inputs]]
name = "{input}"
shape = [1, 3, {side}, {side}]

[[outputs]]
name = "out"
shape = [1, 3, {side}, {side}]
"""


def write_onnx(
    path: Path,
    *,
    side: int = 8,
    name: str = "in",
    operator: str = "Identity",
    domain: str = "",
    seed: str = "",
    spare: str = "",
) -> Path:
    """Write a model of one operator.

    ``spare`` is an input without use; ``seed`` makes a file of the same tensors with another hash.
    """
    shape = [1, 3, side, side]
    graph = helper.make_graph(
        [helper.make_node(operator, [name], ["out"], domain=domain)],
        "small",
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, shape) for each in (name, spare) if each],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
        doc_string=seed,
    )
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, str(path))
    return path


def write_card(
    folder: Path,
    name: str,
    data: bytes | None = None,
    *,
    file: str = "",
    family: str = "small",
    mirrors: tuple[str, ...] = (),
    pack: str = "",
    licence: str = "MIT",
    commercial_use: bool = True,
    input_name: str = "in",
    side: int = 8,
) -> Path:
    """Write a card; without ``data`` it states neither size nor hash."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(
        CARD.format(
            name=name,
            file=file or f"{name}.onnx",
            size_bytes=len(data) if data else 0,
            sha256=sha256(data).hexdigest() if data else "",
            family=family,
            mirrors=", ".join(f'"{address}"' for address in mirrors),
            pack=pack,
            licence=licence,
            commercial_use=str(commercial_use).lower(),
            input=input_name,
            side=side,
        ),
        encoding="utf-8",
    )
    return path
