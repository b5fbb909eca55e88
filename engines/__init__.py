"""The machine room: arrays in, arrays out. Knows devices and models; never faces, frames or threads."""

import os

# ONNX Runtime's Linux builds since 1.29 collect events in the user's cache and send them to their maker as soon as the
# library is loaded, unless this is set before. A program that handles faces tells nobody that it runs.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
