"""Tests of ONNX, which the import of `files` skips where a package is missing or too old."""

# To look for doctests in it would leave half of a module, which the tests could not import.
collect_ignore = ["files.py"]
