"""The whole decision of a fitted model as an ONNX file, which runs without torch."""

from ._file import to_onnx

__all__ = ["to_onnx"]
__dir__ = __all__.copy  # without imported names
