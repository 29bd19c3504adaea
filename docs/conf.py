"""Configuration of Sphinx; names and version come from the installed package."""

from importlib.metadata import metadata

_metadata = metadata("auxcst_sklearn")
project = _metadata["Name"]
author = _metadata["Author"]
release = _metadata["Version"]

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
html_theme = "alabaster"
