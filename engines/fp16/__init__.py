"""Half precision for networks that normalise: the conversion, its islands of single precision, and what both do.

Needs the package onnx; knows graphs and numbers, no GPU.
"""

from engines.fp16.check import Error, check
from engines.fp16.convert import Converted, Report, to_fp16
from engines.fp16.islands import RULES, Rule

__all__ = ["RULES", "Converted", "Error", "Report", "Rule", "check", "to_fp16"]
