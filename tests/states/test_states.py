"""Moments and the Gram matrix against their definitions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from plstream.rows.blocks import Block
from plstream.states import Buffered, Gram, Moments
from plstream.states.folds import training_states
from plstream.states.moments import moments_of
from tests.oracles import regression_data

FIELDS = ["weight", "x_mean", "y_mean", "cross", "x_squares", "y_squares", "upper"]
states = pytest.mark.parametrize("State", [Moments, Gram])


def by_definition(X, Y, weight=None):
    """Return all sums, from the data as a whole in extended precision."""
    X, Y = np.asarray(X, dtype=np.longdouble), np.asarray(Y, dtype=np.longdouble)
    weight = np.ones(len(X)) if weight is None else weight
    total = weight.sum()
    x_mean, y_mean = weight @ X / total, weight @ Y / total
    x, y = X - x_mean, Y - y_mean
    weighted = x * weight[:, None]
    return {
        "weight": total,
        "x_mean": x_mean,
        "y_mean": y_mean,
        "cross": weighted.T @ y,
        "x_squares": np.sum(weighted * x, axis=0),
        "y_squares": weight @ y**2,
        "upper": np.triu(weighted.T @ x),
    }


def assert_equal_states(state, expected, *, rtol=1e-12):
    for name in FIELDS:
        if hasattr(state, name):
            wanted = np.asarray(expected[name], dtype=np.float64)
            np.testing.assert_allclose(
                getattr(state, name), wanted, rtol=0, atol=rtol * np.abs(wanted).max(), err_msg=name
            )


@states
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_numbers_of_classes_are_ones_and_zeros(State, weighted, offset, kind):
    X, _ = regression_data(90, 7)
    X = np.round(X * 8) / 8 + offset
    classes = np.random.default_rng(0).integers(0, 5, 90)
    classes[classes == 2] = 3
    weight = np.linspace(0.01, 3, 90) if weighted else None
    state = State(7, 5)
    for rows in (slice(0, 1), slice(1, 2), slice(2, 50), slice(50, 90)):
        state.update(kind(X)[rows], classes[rows, None].astype(float), None if weight is None else weight[rows])
    expected = by_definition(X, np.eye(5)[classes], weight)
    assert_equal_states(state, expected)
    assert not state.cross[:, 2].any()
    # Without the class that has no rows, and with it again.
    others = State(7, 4)
    others.update(X, (classes - (classes > 2))[:, None].astype(float), weight)
    assert_equal_states(others.add_class(2), expected)


@states
def test_one_class_alone_has_no_covariance(State):
    X, _ = regression_data(50, 7)
    weight = np.random.default_rng(0).uniform(size=50)
    state = State(7, 3).update(X[:30], np.ones((30, 1)), weight[:30]).update(X[30:], np.ones((20, 1)), weight[30:])
    assert not state.cross.any()
    assert not state.y_squares.any()
    np.testing.assert_array_equal(state.y_mean, [0, 1, 0])


@states
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.asfortranarray, np.float32])
def test_update_in_blocks(State, weighted, offset, kind):
    X, Y = regression_data(90, 7, 2)
    if kind is np.float32:
        X = X.astype(np.float32)
    # Rounded to eighths so that even with an offset of 1e8 the data is exact.
    X = np.round(X * 8) / 8 + X.dtype.type(offset if kind is not np.float32 else offset / 1e4)
    Y = np.round(Y * 8) / 8 - offset
    weight = np.linspace(0.01, 3, 90) if weighted else None
    state = State(7, 2)
    rows = X if kind is np.float32 else kind(X)
    for start, stop in ((0, 1), (1, 2), (2, 50), (50, 90)):
        state.update(rows[start:stop], Y[start:stop], None if weight is None else weight[start:stop])
    assert state.n_rows == 90
    assert_equal_states(state, by_definition(X, Y, weight), rtol=1e-11)


@states
def test_merge_does_not_depend_on_the_tree(State):
    X, Y = regression_data(80, 5, 2)
    parts = [State(5, 2).update(X[i : i + 20], Y[i : i + 20]) for i in range(0, 80, 20)]
    left = parts[0].copy().merge(parts[1]).merge(parts[2]).merge(parts[3])
    right = parts[3].copy().merge(parts[2].copy().merge(parts[1].copy().merge(parts[0])))
    for state in (left, right):
        assert_equal_states(state, by_definition(X, Y))
    assert parts[0].n_rows == 20
    empty = State(5, 2)
    assert_equal_states(empty.merge(left), by_definition(X, Y))
    assert_equal_states(left.merge(State(5, 2)), by_definition(X, Y))
    assert State(5, 2).merge(State(5, 2)).weight == 0


@states
def test_forgetting(State):
    X, Y = regression_data(50, 4, 2)
    state = State(4, 2, forgetting=0.9)
    for start in (0, 1, 13, 40):
        stop = {0: 1, 1: 13, 13: 40, 40: 50}[start]
        state.update(X[start:stop], Y[start:stop])
    assert_equal_states(state, by_definition(X, Y, 0.9 ** np.arange(49, -1, -1)))
    assert state.n_rows == 50


@states
def test_constant_columns_have_no_variance_at_all(State):
    X, Y = regression_data(50, 3, 1)
    X[:, 1] = 0.1
    state = State(3, 1)
    for start in range(0, 50, 7):
        state.update(X[start : start + 7], Y[start : start + 7, None])
    other = State(3, 1).update(X[:3], Y[:3, None])
    state.merge(other)
    assert state.x_squares[1] == 0
    assert state.cross[1] == 0
    assert state.x_mean[1] == 0.1


@states
def test_failed_update_changes_nothing(State):
    X, Y = regression_data(30, 4, 2)
    state = State(4, 2, forgetting=0.9).update(X, Y)
    before = state.copy()
    bad = X.copy()
    bad[5, 1] = np.nan
    for rows, message in (
        (bad, r"NaN \(first in row 5, column 1\)"),
        (X * 1e200, "too large"),
        (0 * X + 1e160, "large"),
    ):
        with pytest.raises(ValueError, match=message):
            state.update(rows, Y)
        for name, value in vars(before).items():
            np.testing.assert_array_equal(getattr(state, name), value)


@settings(max_examples=50, deadline=None)
@given(
    outlier=st.floats(-1e150, 1e150),
    row=st.integers(0, 19),
    weight_exponent=st.integers(-8, 8),
    seed=st.integers(0, 2**32 - 1),
)
def test_outliers_cost_no_accuracy(outlier, row, weight_exponent, seed):
    """Relative to its own variance, a column is exact wherever an outlier stands and whatever it weighs."""
    X, Y = regression_data(20, 3, 1, seed)
    X[row, 0] = outlier
    weight = np.ones(20)
    weight[row] = 10.0**weight_exponent
    expected = by_definition(X, Y[:, None], weight)
    state = Gram(3, 1).update(X, Y[:, None], weight)
    np.testing.assert_allclose(state.x_squares, expected["x_squares"].astype(np.float64), rtol=1e-10)
    np.testing.assert_allclose(np.diag(state.upper), state.x_squares, rtol=1e-10)
    bound = np.sqrt(expected["x_squares"] * expected["y_squares"]).astype(np.float64)
    assert (np.abs(state.cross[:, 0] - expected["cross"][:, 0].astype(np.float64)) <= 1e-10 * bound).all()


def exact_moments(X, Y, weight):
    """Return means, cross-covariance and sums of squares of numbers that are multiples of 2^-20, by integers."""
    n = int(weight.sum())
    x, y = (np.array([int(v) for v in np.ravel(A * 2.0**20)], object).reshape(A.shape) for A in (X, Y))
    w = np.array([int(v) for v in weight], object)
    x_sums, y_sums = w @ x, w @ y

    def centred(products, left, right):
        return np.vectorize(lambda s, a, b: float(Fraction(int(n * s - a * b), n * 2**40)))(products, left, right)

    cross = centred((w[:, None] * x).T @ y, x_sums[:, None], y_sums[None])
    x_squares, y_squares = (centred(w @ z**2, sums, sums) for z, sums in ((x, x_sums), (y, y_sums)))
    return np.array([Fraction(int(s), n * 2**20) for s in x_sums]), cross, x_squares, y_squares


def assert_exact(state, X, Y, weight=None):
    """Assert that moments are right to rounding errors: means as shares of deviations, sums as shares of squares."""
    weight = np.ones(len(X)) if weight is None else weight
    means, cross, x_squares, y_squares = exact_moments(X, Y, weight)
    deviations = np.sqrt(x_squares / weight.sum())
    parts = zip(means, state.x_origin, state.x_offset, strict=True)
    errors = np.array([float(Fraction(origin) + Fraction(offset) - mean) for mean, origin, offset in parts])
    np.testing.assert_allclose(errors / deviations, 0, atol=1e-14)
    np.testing.assert_allclose((state.cross - cross) / np.sqrt(np.outer(x_squares, y_squares)), 0, atol=2e-14)
    # Sums in order: added to a large square, small ones would be lost to rounding.
    np.testing.assert_allclose(state.x_squares, x_squares, rtol=3e-12)


def rows_with_outliers(n, outliers):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 3)) * 2**16) / 2**16
    Y = np.round((X[:, :1] + rng.normal(size=(n, 1))) * 2**16) / 2**16
    for row, value in outliers:
        X[row] = value
    return X, Y


first_rows = pytest.mark.parametrize(
    "outliers",
    [
        [],
        [(0, 1e8)],
        [(0, -(2.0**40))],
        [(0, 1e12), (1, -1e12)],
        [(7, 1e12)],
        [(slice(200), 1e8)],
        [(slice(1, None), 1e8)],
    ],
    ids=["none", "row 0", "row 0, large", "two rows", "row 7", "many", "all but one"],
)


@first_rows
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_block_may_begin_with_outliers(outliers, weighted, compiled):
    X, Y = rows_with_outliers(20_000, outliers)
    weight = np.random.default_rng(1).integers(1, 5, len(X)).astype(float) if weighted else None
    assert_exact(moments_of(Block(X, Y, weight, compiled)), X, Y, weight)


@first_rows
def test_classes_and_blocks_that_begin_with_outliers(outliers):
    X, Y = rows_with_outliers(20_000, outliers)
    classes = (Y > 0).astype(float)
    state = Moments(3, 2)
    for start in range(0, len(X), 5000):
        rows = slice(start, start + 5000)
        state.merge(moments_of(Block(X[rows], classes[rows], None, compiled=True, n_classes=2)))
    assert_exact(state, X, np.column_stack([1 - classes, classes]))


@first_rows
@pytest.mark.parametrize("size", [1, 3, 700])
def test_a_stream_may_begin_with_outliers(outliers, size):
    """The mean is not kept as a difference to what was seen first."""
    X, Y = rows_with_outliers(3000, outliers)
    state = Moments(3, 1)
    for start in range(0, len(X), size):
        state.update(X[start : start + size], Y[start : start + size])
    assert_exact(state, X, Y)


def test_gram_action():
    X, Y = regression_data(40, 6, 1)
    v = np.random.default_rng(0).normal(size=6)
    action, square = Gram(6, 1).update(X, Y[:, None]).apply(v)
    x = X - X.mean(axis=0)
    np.testing.assert_allclose(action, x.T @ (x @ v), rtol=1e-12)
    assert square == pytest.approx(np.sum((x @ v) ** 2))


def test_memory_is_stated():
    assert Moments(100, 3).nbytes == 8 * (3 * 100 + 3 * 3 + 300)
    assert Gram(100, 3).nbytes == Moments(100, 3).nbytes + 8 * 100**2
    # Room for rows is made as they come, never for more than a block.
    empty, row = Buffered(Gram(100, 3), 10), 4 * 100 + 8 * (3 + 1)
    X, Y = np.ones((9, 100), np.float32), np.ones((9, 3))
    assert empty.nbytes == Gram(100, 3).nbytes
    assert empty.with_rows(X[:1], Y[:1]).nbytes == Gram(100, 3).nbytes + 2 * row
    assert empty.with_rows(X, Y).nbytes == Gram(100, 3).nbytes + 10 * row


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_buffered_results_are_bit_identical_for_any_chunks(forgetting):
    X, Y = regression_data(100, 5, 2)
    weight = np.linspace(0, 2, 100)
    reference = Buffered(Gram(5, 2, forgetting=forgetting), 16).with_rows(X, Y, weight).current()
    for size in (1, 3, 16, 50, 99):
        stream = Buffered(Gram(5, 2, forgetting=forgetting), 16)
        for start in range(0, 100, size):
            rows = slice(start, start + size)
            stream = stream.with_rows(X[rows], Y[rows], weight[rows])
            stream.current()
        assert stream.n_rows == 99
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(stream.current(), name), getattr(reference, name), err_msg=name)


def test_read_only_state_is_copied_before_it_changes(tmp_path):
    """A state that was mapped from a file to be read must not be written to, nor crash."""
    X, Y = regression_data(40, 6, 1)
    state = Gram(6, 1).update(X[:20], Y[:20, None])
    mapped = np.memmap(tmp_path / "upper", dtype=np.float64, mode="w+", shape=(6, 6), order="F")
    mapped[:] = state.upper
    mapped.flush()
    state.upper = np.memmap(tmp_path / "upper", dtype=np.float64, mode="r", shape=(6, 6), order="F")
    state.update(X[20:], Y[20:, None])
    assert_equal_states(state, by_definition(X, Y[:, None]))
    state.upper = np.ascontiguousarray(np.triu(state.upper))
    state.update(X, Y[:, None])
    twice = by_definition(np.vstack([X, X]), np.vstack([Y[:, None], Y[:, None]]))
    np.testing.assert_allclose(np.triu(state.upper), np.triu(twice["upper"]).astype(np.float64), rtol=1e-10)


def test_streams_that_continue_from_one_another():
    """They share the buffer as long as only one of them takes rows in."""
    X, Y = regression_data(30, 3, 2)
    first = Buffered(Gram(3, 2), block_rows=20).with_rows(X[:5], Y[:5])
    one, other = first.with_rows(X[5:10], Y[5:10]), first.with_rows(X[10:15], Y[10:15])
    one = one.with_rows(X[20:23], Y[20:23])
    first = first.with_rows(X[15:], Y[15:])
    for stream, rows in [
        (one, [*range(10), 20, 21, 22]),
        (other, [*range(5), *range(10, 15)]),
        (first, [*range(5), *range(15, 30)]),
    ]:
        assert_equal_states(stream.current(), by_definition(X[rows], Y[rows]))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=7),
    steps=st.lists(st.sampled_from([0.0, 1.0, 1e6, -1e9]), min_size=7, max_size=7),
    scale=st.sampled_from([1e-150, 1.0, 1e140]),
    weighted=st.booleans(),
    State=st.sampled_from([Moments, Gram]),
)
def test_moments_of_all_rows_but_those_of_a_fold(sizes, steps, scale, weighted, State):
    rng = np.random.default_rng(sum(sizes))
    folds = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(folds), 4)) + 1e8
    X[:, 1] += np.array(steps)[folds]
    X[:, 2] = 3.7
    X, Y = X * scale, X[:, :2] * scale + rng.normal(size=(len(folds), 2)) * scale
    weight = rng.uniform(0.1, 4.0, len(folds)) if weighted else np.ones(len(folds))
    parts = [State(4, 2).update(*(array[folds == fold] for array in (X, Y, weight))) for fold in range(len(sizes))]
    sets = training_states(parts)
    assert len(sets) == len(sizes) + 1
    for left_out, state in enumerate(sets):
        rows = folds != left_out
        assert state.n_rows == rows.sum()
        assert not state.x_squares[2]
        assert state.typical_weight == pytest.approx((weight[rows] ** 2).sum() / weight[rows].sum())
        assert vars(state).keys() == vars(parts[0]).keys()
        assert_equal_states(state, by_definition(X[rows], Y[rows], weight[rows]), rtol=1e-9)
        before = state.copy()
        state.update(X[:1], Y[:1])
        assert state.weight == before.weight + 1


def test_training_states_too_large():
    parts = [moments_of(Block(np.full((2, 1), x), np.ones((2, 1)), None)) for x in (1e160, 2e160, -1e160)]
    with pytest.raises(ValueError, match="too large"):
        training_states(parts)
