"""Settings of the documentation, which `make docs` builds."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import plstream

project = "plstream"
author = "the plstream developers"
copyright = f"2026, {author}"  # noqa: A001
version = release = plstream.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Processes that it starts cannot import it from here: `make example` runs it.
    "filename_pattern": r"/(?!out_of_core)\w+\.py",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    # Links from names in examples to the reference, and from the reference to examples.
    "doc_module": ("plstream",),
    "reference_url": {"plstream": None},
    "backreferences_dir": "gallery/backreferences",
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "abort_on_example_error": True,
}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2
numpydoc_show_class_members = False
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/backreferences"]
html_theme = "furo"
html_title = f"plstream {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False


# Methods that every estimator has of scikit-learn, which documents them.
SCIKIT_LEARN_METHODS = re.compile(r"set_\w+_request|set_output|[gs]et_params|get_metadata_routing")
SCIKIT_LEARN_LINK = re.compile(r":ref:`([^<`]+?) ?<[^>`]+>`")


def setup(app: Sphinx) -> None:
    """Connect what is done with docstrings and blocks of code."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", remove_links)
    app.connect("doctree-read", remove_trailing_lines)


def skip_member(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:  # noqa: ARG001, FBT001
    """Leave out methods that scikit-learn documents."""
    return True if SCIKIT_LEARN_METHODS.fullmatch(name) else None


def remove_links(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Turn links into pages of scikit-learn, which inherited docstrings have, into plain text."""
    lines[:] = [SCIKIT_LEARN_LINK.sub(r"\1", line) for line in lines]


def remove_trailing_lines(app: Sphinx, tree: nodes.document) -> None:  # noqa: ARG001
    """Remove empty lines at the ends of blocks of code, which doctests need."""
    for block in tree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip("\n")
        block.children = [nodes.Text(block.rawsource)]
