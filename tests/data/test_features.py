"""Unusual features of Parquet and HDF5: the file is read correctly, or refused with one sentence."""

import sys

import numpy as np
import pytest

if sys.platform == "win32":
    pytest.skip("needs named pipes", allow_module_level=True)

from plstream import open_source
from plstream.data import DataError
from tests.fuzzing import require_sentence

from .features import FEATURES, READ, REFUSED

X = np.random.default_rng(0).normal(size=(40, 4))
Y = np.arange(40) % 3


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, found in FEATURES.items() for name in found])
def test_feature(kind, name, tmp_path):
    data, options, outcome = FEATURES[kind][name](tmp_path, X, Y)
    expected = X if outcome is READ else outcome
    if expected is REFUSED:
        with pytest.raises(DataError, match=r"d\.parquet|d\.h5") as caught:
            list(open_source(data, **options).blocks())
        require_sentence(caught.value)
        return
    source = open_source(data, **options)
    blocks = source.blocks()
    rows = [next(blocks)[0]]
    if isinstance(expected, np.ndarray):
        rows += [more for more, _ in blocks]
        np.testing.assert_array_equal(np.concatenate(rows), expected)
    blocks.close()
