"""Samples of rows do not depend on blocks, and thinned lines look like complete ones."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plstream.plots.thinning import thin
from plstream.report.evaluation import smallest


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 10), st.data())
def test_kept_rows_are_those_of_the_smallest_keys_in_blocks_of_any_size(keys, size, data):
    keys = np.array(keys)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(keys)), max_size=5)))
    kept = {}
    for rows in np.split(np.arange(len(keys)), cuts):
        kept = smallest(kept, {"key": keys[rows], "row": rows, "twice": np.column_stack([rows, rows])}, size)
    expected = sorted(sorted(range(len(keys)), key=lambda row: (keys[row], row))[:size])
    assert kept["row"].tolist() == expected
    assert np.array_equal(kept["twice"][:, 1], kept["row"])


def test_a_sample_has_every_row_as_often():
    counts = np.zeros(50)
    for seed in range(400):
        kept = smallest({}, {"key": np.random.default_rng(seed).random(50), "row": np.arange(50)}, 10)
        counts[kept["row"]] += 1
    # 400 draws with probability 0.2: a standard deviation of 8.
    assert np.all(np.abs(counts - 80) < 40)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 40))
def test_a_thinned_line_has_the_extremes_of_every_stretch(values, n_bins):
    values = np.array(values)
    at, drawn = thin(np.arange(len(values)), values, n_bins)
    assert np.array_equal(drawn, values[at])
    assert np.all(np.diff(at) > 0)
    assert len(at) <= max(2 * n_bins, 1)
    assert values[at].max() == values.max()
    assert values[at].min() == values.min()
    if len(values) > 2 * n_bins:
        edges = np.linspace(0, len(values), n_bins + 1).astype(int)
        for start, end in pairwise(edges):
            inside = at[(at >= start) & (at < end)]
            assert values[inside].max() == values[start:end].max()
            assert values[inside].min() == values[start:end].min()
    else:
        assert len(at) == len(values)
