"""What every test shares; and what is collected where, as the lowest releases are tested without some packages."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

_NEEDS = {
    "dask": "src/plstream/distributed/collections.py",
    "matplotlib": "src/plstream/plots/*",
    "typer": "src/plstream/cli/*",
}
collect_ignore_glob = [files for package, files in _NEEDS.items() if not find_spec(package)]

# Processes that test side by side share the cores: threads of BLAS that wait for one another take many times as long.
if (n_processes := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))) > 1:
    n_threads = max(1, (os.cpu_count() or 1) // n_processes)
    threadpool_limits(n_threads, user_api="blas")
    # For libraries that are loaded later, and processes that tests start.
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(n_threads)

# What is drawn is drawn without a screen, and Dask waits for processes however busy the machine is.
os.environ["MPLBACKEND"] = "Agg"
os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP"] = "300s"

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
