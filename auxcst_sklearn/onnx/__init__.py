"""A fitted network, or a pipeline that ends with one, as an ONNX file: it runs without torch."""

from ._file import to_onnx

__all__ = ["to_onnx"]
