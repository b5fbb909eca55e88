"""Builds the TensorRT plan of a model, in a process of its own: it may be stopped, take too long, or crash.

What is imported here is light: whoever only asks for a build loads neither TensorRT nor onnx.
"""

from engines.building.asking import Outcome, StoppedError, build
from engines.building.progress import Phase, Progress
from engines.building.settings import PRECISIONS, BuildSettings, Precision, fixed

__all__ = ["PRECISIONS", "BuildSettings", "Outcome", "Phase", "Precision", "Progress", "StoppedError", "build", "fixed"]
