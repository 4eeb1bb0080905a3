"""What is collected where: some parts need packages that the lowest supported releases are tested without."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

_NEEDS = {
    "dask": "src/plstream/distributed/files.py",
    "matplotlib": "src/plstream/inspection/plots/*",
    "typer": "src/plstream/cli/*",
}
collect_ignore_glob = [files for package, files in _NEEDS.items() if not find_spec(package)]


@pytest.fixture(autouse=True)
def _no_figures_left_open() -> Iterator[None]:
    """Close what a test has drawn: matplotlib holds on to its figures, and warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
