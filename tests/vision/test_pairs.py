"""Features of pairs: absolute differences for any type, in blocks."""

import numpy as np
import pytest

from plstream.data import DataError
from plstream.vision import pair_differences


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_differences_of_pairs(dtype, monkeypatch):
    monkeypatch.setattr("plstream.vision.pairs._BLOCK_BYTES", 100)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 7)).astype(dtype)
    pairs = rng.integers(20, size=(31, 2))
    expected = np.array([[abs(float(features[a, j]) - float(features[b, j])) for j in range(7)] for a, b in pairs])
    found = pair_differences(features, pairs)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    out = np.empty((31, 7), np.float32)
    assert pair_differences(features, pairs, out=out) is out
    np.testing.assert_array_equal(out, found)
    assert pair_differences(features, np.empty((0, 2), int)).shape == (0, 7)


@pytest.mark.parametrize("pairs", [[[0, 20]], [[-1, 0]], [[0.0, 1.0]], [0, 1], [[0, 1, 2]]])
def test_wrong_pairs(pairs):
    with pytest.raises(DataError, match="pairs"):
        pair_differences(np.zeros((20, 3)), pairs)


def test_differences_that_do_not_fit(monkeypatch):
    with pytest.raises(DataError, match="out must be float32"):
        pair_differences(np.zeros((2, 3)), [[0, 1]], out=np.empty((1, 2), np.float32))
    monkeypatch.setattr("plstream._core.memory.available_bytes", lambda: 10)
    with pytest.raises(MemoryError, match="The differences of 1 pairs of 3 features requires"):
        pair_differences(np.zeros((2, 3)), [[0, 1]])
