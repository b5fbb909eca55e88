"""The machine room: arrays in, arrays out. Knows devices and models; never faces, frames or threads."""

import os
import sys

# A program that handles faces tells nobody that it runs. ONNX Runtime's Linux builds since 1.29 collect events in the
# user's cache and send them to their maker as soon as the library is loaded, unless this is set before. OpenVINO
# reports its import through a package of its own, and does without where that one cannot be imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # None is how an import is barred
