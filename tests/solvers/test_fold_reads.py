"""The Gram actions of the training rows of folds: compared with sums in higher precision, on hostile data."""

import numpy as np
import pytest

from plstream.rows import ArrayRows
from plstream.solvers import FoldReads, fold_reads


def expected_action(X, weight, v):
    """Return Sv and v'Sv of centred rows, in higher precision."""
    x, w = X.astype(np.longdouble), weight.astype(np.longdouble)
    x = x - w @ (x - x[0]) / w.sum() - x[0]
    scores = x @ v
    return x.T @ (w * scores), scores @ (w * scores)


@pytest.fixture(params=["stacked", "by fold", "blocks"])
def way(request, monkeypatch):
    """Let all three ways to the actions process the same data."""
    if request.param == "by fold":
        monkeypatch.setattr(fold_reads, "_LITTLE_BYTES", 0)
    if request.param == "blocks":
        monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    return request.param


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize(
    "kind", ["plain", "offset 1e4", "offset 1e8", "constant", "outlier", "tiny", "huge", "rank one"]
)
def test_actions_of_all_sets(way, dtype, n_folds, kind):
    rng = np.random.default_rng(n_folds)
    X = rng.normal(size=(61, 12)) + 2 * rng.normal(size=12)
    used = np.arange(12) != (4 if kind == "constant" else -1)
    if kind.startswith("offset"):
        # Numbers of float32 near 1e8 are multiples of eight.
        X = 100 * X + float(kind.removeprefix("offset"))
    elif kind == "constant":
        X[:, ~used] = 1e6
    elif kind == "outlier":
        X[7] += 1e6
    elif kind == "rank one":
        X = np.outer(X[:, 0], X[0])
    elif kind in {"tiny", "huge"}:
        X *= 10.0 ** ((-1 if kind == "tiny" else 1) * (15 if dtype is np.float32 else 150))
    X = np.asfortranarray(X.astype(dtype)) if n_folds == 3 else X.astype(dtype)
    weight = rng.uniform(0.5, 2, size=61)
    folds = np.arange(61) % n_folds
    rows = ArrayRows(X, X[:, :1], weight, batch_size=20 if way == "blocks" else None)
    reads = FoldReads(rows, lambda first, n: folds[first : first + n], n_folds, 2).read_folds()
    assert bool(reads.held) == (way != "blocks")
    # The solver ignores constant columns.
    V = rng.normal(size=(n_folds + 1, 12)) * used
    actions, squares = reads.apply_jointly(V, range(n_folds + 1))
    for left_out, (v, action, square) in enumerate(zip(V, actions, squares, strict=True)):
        training = folds != left_out
        expected, expected_square = expected_action(X[training], weight[training], v)
        error = np.abs(action - expected)[used].max() / np.abs(expected).max()
        assert error < 1e-12
        assert float(square / expected_square) == pytest.approx(1, rel=1e-12)
