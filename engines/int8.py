"""Quantises the convolutions and linear layers of a network from samples; knows numbers, not what the samples show.

ONNX Runtime's quantisation does the work: it writes what it decides into the graph as pairs of QuantizeLinear and
DequantizeLinear, which is the only form that TensorRT still reads. Normalisations are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import ModelProto, version_converter
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.quant_utils import add_pre_process_metadata

from engines.errors import ModelError
from engines.fp16.check import Error, error_of, run
from engines.graph.view import opset_of, typed

Inputs = Mapping[str, NDArray[Any]]
"""Input name -> array, for one run."""

MOST_ERROR = 0.1
"""Of an output over all held-out samples, as the length of the differences over the length of the values. A picture
that is off by that is visibly noisy."""
FEWEST_SAMPLES = 8
"""With fewer the largest values that a layer makes are not known."""
MOST_SAMPLES = 256
"""More change no range any more, and each is kept while the ranges are found."""
_HELD_OUT = 4
_PER_CHANNEL_OPSET = 13
_OPTIONS = {
    "ActivationSymmetric": True,  # TensorRT: every zero point is 0
    "WeightSymmetric": True,
    "OpTypesToExcludeOutputQuantization": ["Conv", "Gemm"],  # what follows is a normalisation or a bend, in float
    "QuantizeBias": False,  # its parser takes no whole numbers of 32 bits here
    "AddQDQPairToWeight": True,
}


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network in whole numbers where that was asked for.

    Attributes:
        model: float32 between the pairs; its inputs and outputs are what they were.
        layers: number of nodes that compute in whole numbers.
        errors: of each output, over the samples that were held out.
    """

    model: ModelProto
    layers: int
    errors: tuple[Error, ...]


def to_int8(
    model: ModelProto, samples: Iterable[Inputs], most_error: float = MOST_ERROR, exclude: Sequence[str] = ()
) -> Quantised:
    """Quantise a network, and prove on samples that it did not see how far that moves its outputs.

    Args:
        model: cleaned, float32, of fixed shapes, see :func:`engines.graph.prepare`; only read.
        samples: what it gets at work: pictures cropped and normalised as the card says. The first
            :data:`MOST_SAMPLES` are used; every one of them is held in memory.
        most_error: root mean square of the differences over that of the values, of any output.
        exclude: names of nodes that stay in float32.

    Returns:
        The network. :func:`engines.fp16.to_fp16` leaves its quantised layers alone and converts the rest.

    Raises:
        ModelError: there are fewer than :data:`FEWEST_SAMPLES` samples, or an output is off by more than
            ``most_error``; the message has the figure.
    """
    taken = list(islice(samples, MOST_SAMPLES))
    if len(taken) < FEWEST_SAMPLES:
        raise ModelError(
            f"{len(taken)} samples are too few to find out what whole numbers must cover",
            f"give {FEWEST_SAMPLES} pictures or more, of the kind that the network will see",
        )
    seen, unseen = taken[:-_HELD_OUT], taken[-_HELD_OUT:]
    if opset_of(model) < _PER_CHANNEL_OPSET:  # a scale for each channel came with that
        model = typed(version_converter.convert_version(model, _PER_CHANNEL_OPSET))
    quantised = _quantised(model, seen, exclude)
    errors = _errors(model, quantised, unseen)
    worst = max(errors, key=lambda error: error.rms)
    if not worst.rms <= most_error:
        raise ModelError(
            f"in whole numbers output {worst.name!r} is {worst.rms:.1%} off, more than the {most_error:.1%} allowed",
            "leave this network in half precision, or give samples that are more like what it will see",
        )
    return Quantised(quantised, _layers(quantised), errors)


def _quantised(model: ModelProto, samples: Sequence[Inputs], exclude: Sequence[str]) -> ModelProto:
    """Find the ranges on samples and write the pairs. By way of files: a model in memory would be changed."""
    with TemporaryDirectory() as folder:
        plain, written = Path(folder) / "float32.onnx", Path(folder) / "int8.onnx"
        marked = ModelProto()
        marked.CopyFrom(model)
        add_pre_process_metadata(marked)  # its own cleaning before would do again what ours did
        onnx.save(marked, plain)
        quantize_static(
            str(plain),
            str(written),
            _Samples(samples),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "Gemm"],
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=list(exclude),
            calibrate_method=CalibrationMethod.MinMax,
            extra_options=_OPTIONS,
        )
        return onnx.load(written)


class _Samples(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """Hands out samples as the quantisation asks for them."""

    def __init__(self, samples: Sequence[Inputs]) -> None:
        self._left: Iterator[Inputs] = iter(samples)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """Give the next sample; None after the last."""
        sample = next(self._left, None)
        return None if sample is None else dict(sample)


def _errors(model: ModelProto, quantised: ModelProto, samples: Sequence[Inputs]) -> tuple[Error, ...]:
    """Compare on each sample, and keep the worst of each output."""
    each = []
    for sample in samples:
        right, asked = run(model, sample), run(quantised, sample)
        each.append([error_of(name, right[name], asked[name]) for name in right])
    return tuple(max(errors, key=lambda error: error.rms) for errors in zip(*each, strict=True))


def _layers(model: ModelProto) -> int:
    made = {name: node.op_type for node in model.graph.node for name in node.output}
    return sum(
        any(made.get(name) == "DequantizeLinear" for name in node.input)
        for node in model.graph.node
        if node.op_type in ("Conv", "Gemm")
    )
