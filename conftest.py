"""What is collected where, as some parts need packages that the lowest releases are tested without; and what all share."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

_NEEDS = {
    "dask": "src/plstream/distributed/files.py",
    "matplotlib": "src/plstream/inspection/plots/*",
    "typer": "src/plstream/cli/*",
}
collect_ignore_glob = [files for package, files in _NEEDS.items() if not find_spec(package)]


# Nothing depends on the speed of the machine, and a run is like the one before. `make fuzz` looks for new examples.
settings.register_profile("known", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("new", settings.get_profile("known"), derandomize=False, print_blob=True)
settings.load_profile("known")


@pytest.fixture(autouse=True)
def _no_figures_left_open() -> Iterator[None]:
    """Close what a test has drawn: matplotlib holds on to its figures, and warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
