"""Settings of the documentation, which `make docs` builds."""

from docutils import nodes
from sphinx.application import Sphinx

import plstream

project = "plstream"
author = "the plstream developers"
copyright = f"2026, {author}"  # noqa: A001
version = release = plstream.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx-mathjax-offline"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"plstream {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Take from blocks of code the empty lines at their ends, which doctests need."""
    app.connect("doctree-read", without_last_lines)


def without_last_lines(app: Sphinx, tree: nodes.document) -> None:  # noqa: ARG001
    """Remove empty lines at the ends of blocks."""
    for block in tree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip("\n")
        block.children = [nodes.Text(block.rawsource)]
