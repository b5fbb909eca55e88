"""A face swapper in PyTorch and its way to ONNX; needs the extra ``train``, and nothing else in the program needs it.

The parts are made to be exchanged: identity encoder, fusion strategy and generator are modules of their own, joined in
``swapper.py``, and each is compared with what ONNX Runtime makes of it before a file is written.
"""
