"""Configuration of Sphinx; name and version are those installed."""

import os
import warnings
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx_gallery.sorting import FunctionSortKey

_metadata = metadata("auxcst_sklearn")
project = _metadata["Name"]
author = _metadata["Author"]
release = _metadata["Version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
autosummary_generate = True
autodoc_typehints = "none"  # the types are in the sections of parameters
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
exclude_patterns = ["_build", "_templates"]

# Links to other projects need the network: INTERSPHINX=1 makes them.
intersphinx_mapping = (
    {
        "sklearn": ("https://scikit-learn.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
    }
    if os.environ.get("INTERSPHINX")
    else {}
)

# Costs first, then decisions and plots, then networks, then the work
# around them.
gallery = [
    "fraud_amounts",
    "review_desk",
    "credit_limits",
    "triage",
    "ordinal_grades",
    "class_tree",
    "one_percent",
    "five_prices",
    "threshold_budget",
    "cost_confusion",
    "refused_customer",
    "layer_estimates",
    "cnn_digits",
    "own_module",
    "integrated_gradients",
    "texts",
    "pretrained",
    "search",
    "onnx_service",
    "cluster_search",
]
# empulse has the data of a page, and its bounds may be behind a new Python.
skipped = []
if not find_spec("empulse"):
    print("empulse is missing: plot_refused_customer is left out.")
    skipped = ["plot_refused_customer"]
# torch's exporter warns about itself, and pages show warnings.
warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
sphinx_gallery_conf = {
    "within_subsection_order": FunctionSortKey(
        [f"plot_{name}.py" for name in gallery].index
    ),
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "ignore_pattern": "|".join(["__init__", *skipped]),
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": True,
    # Old matplotlib (3.7, 3.8) omits a notebook's first figure without it.
    "first_notebook_cell": "%matplotlib inline",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 5,
}
# Pages without pages below them.
html_sidebars = {
    page: [] for page in ["method", "benchmarks", "experiments", "changelog"]
}
toc_object_entries_show_parents = "hide"
html_title = f"{project} {release}"  # in the header of each page
html_show_sourcelink = False
copyright = "The auxcst_sklearn developers, BSD 3-clause licence"

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/auxcst/auxcst_sklearn/blob/main/"


def link_pages(app, doctree, docname):
    """Links to files work on GitHub; here they lead to pages made of them."""
    folder = Path(app.env.doc2path(docname)).parent
    for link in doctree.findall(nodes.reference):
        uri, _, anchor = link.get("refuri", "").partition("#")
        if link.get("internal") or not uri or ":" in uri:
            continue
        path = (folder / uri).resolve().relative_to(ROOT)
        page = path.with_suffix("").as_posix()
        page = page.removeprefix("docs/").removeprefix("examples/")
        if page == "gallery":
            page = "gallery/index"
        if page in app.env.found_docs:
            uri = app.builder.get_relative_uri(docname, page)
        elif (ROOT / path).exists():
            uri = REPOSITORY + path.as_posix()
        else:
            raise ValueError(f"{docname} links {uri}, which does not exist")
        link["refuri"] = f"{uri}#{anchor}" if anchor else uri


def setup(app):
    app.connect("doctree-resolved", link_pages)
