"""The sign of a component is that of its entry of largest magnitude."""

import numpy as np
import pytest

from plstream._core.signs import peak_sign, peak_signs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_largest_entries_become_positive(dtype):
    vectors = np.random.default_rng(0).normal(size=(5, 40)).astype(dtype)
    signs = peak_signs(vectors)
    turned = vectors * signs
    assert signs.dtype == turned.dtype == dtype
    np.testing.assert_array_equal(np.abs(signs), 1)
    np.testing.assert_array_equal(turned.max(axis=0), np.abs(vectors).max(axis=0))
    assert [peak_sign(vector) for vector in vectors.T] == list(signs)


def test_signs_of_zeros_are_positive():
    np.testing.assert_array_equal(peak_signs(np.zeros((3, 2))), [1, 1])
    assert peak_signs(np.zeros((0, 2))).tolist() == [1, 1]
    assert peak_signs(np.zeros((3, 0))).shape == (0,)
