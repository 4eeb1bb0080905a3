"""Settings of the documentation, which `make docs` builds."""

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
