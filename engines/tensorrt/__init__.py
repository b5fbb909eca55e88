"""Networks on TensorRT: plans that this program built, run from and into memory of the GPU; knows no picture."""
