"""Measured data that is not part of the project: tests that need it are skipped where it is not at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(os.environ.get("PLSTREAM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real_data(name):
    """Return the arrays of a file, by name; or skip the test."""
    if not (FOLDER / name).exists():
        pytest.skip(f"needs {name} in the folder that PLSTREAM_DATA names")
    return np.load(FOLDER / name)
