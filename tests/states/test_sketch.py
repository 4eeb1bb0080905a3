"""The sketch: exact for data of low rank, and close to the PLS solution otherwise, for any stream."""

import pickle
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from plstream.rows import Block
from plstream.solvers import Scaling, solve_scaled
from plstream.states import Buffered, Gram, Sketch
from plstream.states.held_rows import HeldRows, SparseRows, combine, products
from plstream.states.moments import moments_of
from plstream.states.sketch_errors import ActionErrors, SketchErrors
from tests.oracles import regression_data


def spectrum_data(n, m, decay, seed=0):
    """Rows with variances j^(-2 decay) along random directions, and a response that depends on all of them."""
    rng = np.random.default_rng(seed)
    deviations = np.arange(1.0, m + 1) ** -decay
    directions = np.linalg.qr(rng.normal(size=(m, m)))[0]
    X = rng.normal(size=(n, m)) * deviations @ directions.T
    y = X @ directions @ (rng.normal(size=m) * np.sqrt(deviations))
    return X, (y / y.std() + 0.5 * rng.normal(size=n))[:, None]


def sketched(X, Y, size, n_components=4, *, weight=None, **params):
    stream = Buffered(Sketch(X.shape[1], Y.shape[1], size=size, n_components=n_components, **params), size)
    return stream.with_rows(X, Y, weight)


def weights_of(state, n_components, *, scale=False):
    return solve_scaled(state, state, Scaling.of(state, scale=scale), n_components).x_weights


def coefficients_of(state, n_components, *, scale):
    scaling = Scaling.of(state, scale=scale)
    scaled = solve_scaled(state, state, scaling, n_components).coefficients()
    return scaled * scaling.y_scale / scaling.x_scale[:, None]


def smallest_cosine(V, W):
    return np.linalg.svd(V.T @ W, compute_uv=False).min()


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("q", [1, 3])
def test_exact_up_to_its_size(scale, q):
    """Hundreds of rows of rank 10, in a sketch of 12: the matrix it stands for is the right one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10)) @ rng.normal(size=(10, 40)) * np.geomspace(1, 1000, 40) + 50
    Y = X[:, :q] / 100 + rng.normal(size=(500, q))
    state = sketched(X, Y, 12, scale=scale).current()
    x = X - X.mean(axis=0)
    v = rng.normal(size=40)
    action, square = state.apply(v)
    np.testing.assert_allclose(action, x.T @ (x @ v), rtol=1e-9, atol=1e-9 * np.abs(x.T @ (x @ v)).max())
    assert square == pytest.approx(np.sum((x @ v) ** 2))
    assert not state.lost.any()
    assert not state.subspace_error.any()


def test_a_compression_does_not_change_the_action_on_the_solution():
    X, Y = spectrum_data(61, 200, 0.3)
    state = Sketch(200, 1, size=20, n_components=4).update(X, Y)
    before = weights_of(state, 4)
    actions = [state.apply(w)[0] for w in before.T]
    state._compress()
    assert state.n_held == 20
    assert state.lost.sum() > 0.2 * state.x_squares.sum()
    for w, action in zip(before.T, actions, strict=True):
        np.testing.assert_allclose(state.apply(w)[0], action, atol=1e-5 * np.abs(action).max())
    assert smallest_cosine(weights_of(state, 4), before) > 1 - 1e-9


@pytest.mark.parametrize(("decay", "bounds"), [(0.25, (0.999, 0.97)), (0.5, (0.9999, 0.999)), (1.0, (0.9999, 0.9999))])
@pytest.mark.parametrize("scale", [True, False])
def test_close_to_the_exact_solution(decay, bounds, scale):
    X, Y = spectrum_data(4000, 400, decay)
    exact = Gram(400, 1).update(X, Y)
    for c, bound in zip((2, 4), bounds, strict=True):
        state = sketched(X, Y, 96, c, scale=scale).current()
        assert smallest_cosine(weights_of(state, c, scale=scale), weights_of(exact, c, scale=scale)) > bound
        np.testing.assert_allclose(state.x_squares, exact.x_squares)
        np.testing.assert_allclose(state.cross, exact.cross, atol=1e-9 * np.abs(exact.cross).max())


def test_better_than_plain_truncation():
    """A sketch that is never told of y keeps leading directions only, as incremental SVD does."""
    X, Y = spectrum_data(4000, 300, 0.25)
    exact = weights_of(Gram(300, 1).update(X, Y), 3)
    state, blind = sketched(X, Y, 40, 3).current(), sketched(X, 0 * Y, 40, 3).current()
    blind.cross, blind.y_squares = state.cross, state.y_squares
    ours, theirs = (np.arccos(smallest_cosine(weights_of(one, 3), exact)) for one in (state, blind))
    assert ours < theirs / 3


@pytest.mark.parametrize("scale", [True, False])
def test_merge_of_parts(scale):
    X, Y = spectrum_data(4000, 300, 0.5)
    parts = [sketched(X[rows], Y[rows], 96, scale=scale) for rows in np.array_split(np.arange(4000), 8)]
    others = [part.current().held.pieces[0].copy() for part in parts]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.merged(part)
    for part, before in zip(parts[1:], others[1:], strict=True):
        np.testing.assert_array_equal(part.current().held.pieces[0], before)
    merged = whole.current()
    assert merged.n_rows == 4000
    assert merged.n_held <= 3 * 96 + 1
    exact = Gram(300, 1).update(X, Y)
    assert smallest_cosine(weights_of(merged, 4, scale=scale), weights_of(exact, 4, scale=scale)) > 0.998


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("unit", [1e-140, 1e-30, 0.0, 1e30, 1e140])
def test_merge_of_parts_in_very_different_units(unit, scale):
    X, Y = spectrum_data(600, 100, 0.25)
    X[300:] *= unit
    parts = [sketched(X[rows], Y[rows], 20, scale=scale) for rows in np.array_split(np.arange(600), 2)]
    for first, second in (parts, parts[::-1]):
        merged = first.merged(second).current()
        assert np.isfinite(merged.errors.action.sums).all()
        assert np.isfinite(merged.subspace_error).all()
        exact = weights_of(Gram(100, 1).update(X, Y), 2, scale=scale)
        assert smallest_cosine(weights_of(merged, 2, scale=scale), exact) > 0.9


def test_label_sorted_rows():
    """With one class first there is nothing to predict, and nothing known of what is to be kept."""
    X, Y = spectrum_data(4000, 300, 0.5)
    Y = np.sign(Y)
    order = np.argsort(Y[:, 0], kind="stable")
    exact = weights_of(Gram(300, 1).update(X, Y), 4)
    shuffled = smallest_cosine(weights_of(sketched(X, Y, 96).current(), 4), exact)
    in_order = smallest_cosine(weights_of(sketched(X[order], Y[order], 96).current(), 4), exact)
    assert in_order > shuffled - 0.01


def test_forgetting_follows_a_drift():
    """Later rows lie along other directions, and another direction predicts."""
    first, Y_first = spectrum_data(3000, 200, 0.5, seed=1)
    later, Y_later = spectrum_data(3000, 200, 0.5, seed=2)
    X, Y = np.concatenate([first, later]), np.concatenate([Y_first, Y_later])
    state = sketched(X, Y, 96, forgetting=0.998).current()
    exact = Gram(200, 1, forgetting=0.998).update(X, Y)
    assert smallest_cosine(weights_of(state, 4), weights_of(exact, 4)) > 0.99
    assert smallest_cosine(weights_of(state, 2), weights_of(Gram(200, 1).update(later, Y_later), 2)) > 0.9
    np.testing.assert_allclose(state.x_squares, exact.x_squares)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("forgetting", [0.5, 1e-3, 1e-6])
@pytest.mark.parametrize("unit", [1.0, 1e-150])
@pytest.mark.parametrize("size", [8, 128])
def test_forgetting_so_fast_that_nothing_is_left(scale, forgetting, unit, size):
    """A factor that underflows is still a factor; so with columns that vary only at first, or only later."""
    X, Y = regression_data(2000, 6)
    X[:, 2] = 7.0
    X[:1000, 3] = 1.0
    X[1000:, 4] = 2.0
    X *= unit
    state = sketched(X, Y[:, None], size, 2, scale=scale, forgetting=forgetting).current()
    exact = Buffered(Gram(6, 1, forgetting=forgetting), size).with_rows(X, Y[:, None]).current()
    v = np.array([1.0, -1, 1, 1, 0, 1]) / unit
    action, square = exact.apply(v)
    np.testing.assert_allclose(state.apply(v)[0], action, rtol=1e-6, atol=1e-9 * np.abs(action).max())
    assert state.apply(v)[1] == pytest.approx(square)


@pytest.mark.parametrize(("size", "typical", "tolerance"), [(128, np.max, 1e-6), (40, np.median, 2.0)])
@pytest.mark.parametrize("forgetting", [0.98, 0.95])
def test_columns_that_have_been_quiet_for_long(forgetting, size, typical, tolerance):
    """Rare events, forgotten since: what is left of them is scaled up, and must not bring errors up with it.

    The error of a small sketch depends on rounding, so it is the median over seeds that is bounded.
    """
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.hstack([rng.normal(size=(6000, 30)), rng.random((6000, 70)) < 5e-4])
        Y = X[:, :1] + X[:, 1:2] + 0.1 * rng.normal(size=(6000, 1))
        state = sketched(X, Y, size, 2, scale=True, forgetting=forgetting).current()
        exact = Buffered(Gram(100, 1, forgetting=forgetting), size).with_rows(X, Y).current()
        ours, theirs = (coefficients_of(one, 2, scale=True) for one in (state, exact))
        errors.append(np.abs((X[-300:] - state.x_mean) @ (ours - theirs)).max())
        assert np.abs(ours).max() < 10 * np.abs(theirs).max()
    assert typical(errors) < tolerance


def test_columns_that_grow_quieter_are_not_dropped():
    X, Y = spectrum_data(4000, 50, 0.25)
    X[500:, 7] *= 1e-2
    state = sketched(X, Y, 20, 2, scale=True, forgetting=0.99).current()
    assert state.x_squares[7] > 0
    assert state.x_squares[7] == pytest.approx(Gram(50, 1, forgetting=0.99).update(X, Y).x_squares[7], rel=1e-3)


def test_weights_are_repeated_rows():
    X, Y = spectrum_data(600, 100, 0.5)
    weight = np.random.default_rng(0).integers(0, 4, size=600).astype(float)
    weighted = sketched(X, Y, 60, weight=weight).current()
    repeated = sketched(np.repeat(X, weight.astype(int), 0), np.repeat(Y, weight.astype(int), 0), 60).current()
    np.testing.assert_allclose(weighted.x_squares, repeated.x_squares)
    assert smallest_cosine(weights_of(weighted, 4), weights_of(repeated, 4)) > 0.9995


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("unit", [2.0**-500, 2.0**-60, 2.0**100, 2.0**500])
def test_units_do_not_matter(scale, unit):
    """Not even when rows are kept in float32, which knows no such numbers."""
    X, Y = spectrum_data(2000, 100, 0.25)
    expected, state = sketched(X, Y, 20, scale=scale).current(), sketched(X * unit, Y * unit, 20, scale=scale).current()
    assert state.held.dtype == np.float32
    np.testing.assert_allclose(weights_of(state, 3, scale=scale), weights_of(expected, 3, scale=scale), atol=1e-9)
    assert state.lost.sum() / state.x_squares.sum() == pytest.approx(expected.lost.sum() / expected.x_squares.sum())


def test_units_that_grow_during_training():
    X, Y = spectrum_data(2000, 100, 0.25)
    X *= np.geomspace(1e-60, 1e60, 2000)[:, None]
    state = sketched(X, Y, 20, scale=True).current()
    exact = Gram(100, 1).update(X, Y)
    assert np.isfinite(np.concatenate(state.held.pieces)).all()
    assert smallest_cosine(weights_of(state, 2, scale=True), weights_of(exact, 2, scale=True)) > 0.99


def test_offsets_do_not_matter():
    X, Y = spectrum_data(2000, 100, 0.5)
    X = np.round(X * 2**20) / 2**20
    near, far = sketched(X, Y, 40).current(), sketched(X + 2.0**28, Y, 40).current()
    assert smallest_cosine(weights_of(near, 3), weights_of(far, 3)) > 1 - 1e-6


def test_constant_and_late_columns():
    X, Y = spectrum_data(2000, 60, 0.25)
    X[:, 5] = 3.0
    X[:1500, 6] = 0.0
    for scale in (True, False):
        state = sketched(X, Y, 20, scale=scale).current()
        W = weights_of(state, 3, scale=scale)
        assert np.isfinite(W).all()
        assert (W[5] == 0).all()
        exact = weights_of(Gram(60, 1).update(X, Y), 3, scale=scale)
        assert smallest_cosine(W, exact) > 0.9


def test_constant_data():
    state = sketched(np.full((500, 9), 2.5), np.arange(500.0)[:, None], 4, 2, scale=True).current()
    assert state.apply(np.ones(9))[1] == 0
    assert not state.lost.any()


def test_float32_only_when_much_is_lost():
    rng = np.random.default_rng(0)
    low_rank = rng.normal(size=(500, 5)) @ rng.normal(size=(5, 50))
    assert sketched(low_rank, low_rank[:, :1], 10).state.held.dtype == np.float64
    X, Y = spectrum_data(500, 50, 0.25)
    lossy = sketched(X, Y, 10)
    assert lossy.state.held.dtype == np.float32
    merged = sketched(low_rank, low_rank[:, :1], 10).merged(lossy).current()
    assert {piece.dtype for piece in merged.held.pieces} == {np.dtype(np.float32)}
    merged = sketched(1e6 * low_rank, low_rank[:, :1], 10).merged(lossy).current()
    assert {piece.dtype for piece in merged.held.pieces} == {np.dtype(np.float64)}
    assert merged.subspace_error.max() < 1e-6


def test_rounding_errors_make_no_difference():
    X, Y = spectrum_data(1000, 200, 0.25)
    noise = 1 + 1e-15 * np.random.default_rng(0).normal(size=X.shape)
    ours, theirs = (weights_of(sketched(rows, Y, 40).current(), 4) for rows in (X, X * noise))
    assert smallest_cosine(ours, theirs) > 1 - 1e-6


@pytest.mark.parametrize("q", [7, 40])
def test_more_responses_than_features(q):
    X, Y = regression_data(300, 6, q)
    exact = weights_of(Gram(6, q).update(X, Y), 3)
    assert smallest_cosine(weights_of(sketched(X, Y, 6, 3).current(), 3), exact) > 1 - 1e-9


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 300), max_size=8),
    m=st.integers(1, 40),
    q=st.integers(1, 3),
    size=st.integers(2, 20),
    scale=st.booleans(),
    forgetting=st.sampled_from([1.0, 0.99]),
    dtype=st.sampled_from([np.float64, np.float32]),
    seed=st.integers(0, 2**32 - 1),
)
def test_results_are_bit_identical_for_any_chunks(cuts, m, q, size, scale, forgetting, dtype, seed):
    X, Y = regression_data(300, m, q, seed)
    X, Y = X.astype(dtype), Y.reshape(300, -1)
    params = {"size": size, "n_components": 2, "scale": scale, "forgetting": forgetting}
    whole = Buffered(Sketch(m, q, **params), size).with_rows(X, Y)
    chunks = Buffered(Sketch(m, q, **params), size)
    edges = [0, *sorted(cuts), 300]
    for start, stop in pairwise(edges):
        chunks = chunks.with_rows(X[start:stop], Y[start:stop])
        chunks.current()
    assert_same_states(whole.current(), chunks.current())


def assert_same_states(state, other):
    for name, value in vars(state).items():
        if isinstance(value, tuple):
            arrays, others = (chain(*each) if name == "residuals" else each for each in (value, getattr(other, name)))
            for array, expected in zip(arrays, others, strict=True):
                np.testing.assert_array_equal(array, expected)
        elif isinstance(value, HeldRows | SketchErrors | ActionErrors):
            assert_same_states(value, getattr(other, name))
        else:
            np.testing.assert_array_equal(value, getattr(other, name))


def documents(n, m, seed=0):
    """Sparse counts of words in texts about a few topics, and a response that depends on the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.1, size=(12, m))
    shares = rng.dirichlet(np.full(12, 0.2), size=n)
    X = rng.poisson(20 * shares @ (topics / topics.sum(axis=1, keepdims=True))).astype(np.float64)
    return sparse.csr_array(X), shares @ rng.normal(size=(12, 1)) + 0.1 * rng.normal(size=(n, 1))


def aged(weight, forgetting):
    return weight * forgetting ** np.arange(len(weight) - 1, -1, -1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_products_of_sparse_rows_are_those_of_centred_ones(weighted, dtype):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 9)) < 0.2, rng.normal(size=(60, 9)), 0.0)
    # Far from zero, constant, and both in part.
    X[:, 1], X[:, 2], X[:, 3] = 1e6 + rng.normal(size=60), 7.0, np.where(np.arange(60) < 59, 300.0, 0.0)
    X[:, 4] = 1e4 + rng.normal(size=60) * 1e-3
    weight = rng.uniform(0.5, 2, size=60) if weighted else None
    block = Block(sparse.csr_array(X.astype(dtype)), X[:, :1], weight)
    rows = SparseRows.of(block, moments_of(block))
    X = X.astype(dtype).astype(np.float64)
    expected = (X - np.average(X, axis=0, weights=weight)) * np.sqrt(np.ones(60) if weight is None else weight)[:, None]
    ratio = np.geomspace(0.1, 10, 9)
    rows, expected = rows.times(ratio), expected * ratio
    V, U = rng.normal(size=(9, 3)), rng.normal(size=(60, 2))
    expected[:, 2] = 0.0
    scale = np.where(np.arange(9) == 2, 1.0, np.linalg.norm(expected, axis=0))
    np.testing.assert_allclose(rows @ (V / scale[:, None]), expected @ (V / scale[:, None]), atol=1e-9)
    np.testing.assert_allclose(rows.combined(U) / scale, U.T @ expected / scale, atol=1e-9)
    np.testing.assert_allclose(combine(U, (rows,), np.dtype(np.float64)), rows.combined(U))
    np.testing.assert_allclose(rows.column_squares(), np.square(expected).sum(axis=0), rtol=1e-9)
    action, squares = products(rows, V)
    np.testing.assert_allclose(action, expected.T @ (expected @ V), rtol=1e-9)
    np.testing.assert_allclose(squares, np.square(expected @ V).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("scale", [True, False])
def test_sparse_rows_of_low_rank_are_exact(scale):
    """Thousands of rows that are multiples of twenty different ones, in a sketch of 24."""
    rng = np.random.default_rng(0)
    kinds = np.where(rng.random((20, 400)) < 0.03, rng.normal(size=(20, 400)), 0.0)
    X = kinds[rng.integers(20, size=4000)] * rng.normal(size=(4000, 1))
    X[:, 5] += 1e5
    Y = X[:, :1] + X[:, 1:40].sum(axis=1, keepdims=True) + rng.normal(size=(4000, 1))
    stream = sketched(sparse.csr_array(X), Y, 24, scale=scale)
    assert stream.n_waiting > 24
    state = stream.current()
    exact = Gram(400, 1).update(X, Y)
    assert not state.lost.any()
    assert not state.subspace_error.any()
    expected = coefficients_of(exact, 4, scale=scale)
    np.testing.assert_allclose(coefficients_of(state, 4, scale=scale), expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("forgetting", [1.0, 0.999])
def test_blocks_of_sparse_rows_are_at_least_as_close_as_dense_ones(scale, forgetting):
    X, Y = documents(6000, 600)
    weight = np.random.default_rng(1).uniform(0.5, 2, size=6000)
    params = {"scale": scale, "forgetting": forgetting, "weight": weight}
    state, dense = (sketched(rows, Y, 48, **params).current() for rows in (X, X.toarray()))
    exact = Gram(600, 1).update(X.toarray(), Y, aged(weight, forgetting))
    for name in ("x_mean", "x_squares", "cross", "y_squares"):
        expected = getattr(exact, name)
        np.testing.assert_allclose(getattr(state, name), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    expected = weights_of(exact, 4, scale=scale)
    sines = [np.sqrt(1 - smallest_cosine(weights_of(each, 4, scale=scale), expected) ** 2) for each in (state, dense)]
    assert sines[0] < 1.1 * sines[1] < 1.1 * 0.7
    assert state.n_held <= 3 * 48 + 1
    assert sines[0] / 2 < state.subspace_error[-1] < 1


@settings(max_examples=30)
@given(
    cuts=st.lists(st.integers(0, 400), max_size=4),
    m=st.integers(20, 60),
    density=st.sampled_from([0.0, 0.05, 0.5]),
    size=st.integers(2, 8),
    forgetting=st.sampled_from([1.0, 0.99, 0.5]),
    dense_from=st.integers(0, 500),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_chunks_of_sparse_rows_give_the_same_to_the_last_bit(cuts, m, density, size, forgetting, dense_from, seed):
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((400, m)) < density, rng.normal(size=(400, m)), 0.0)
    Y = rng.integers(3, size=(400, 1)).astype(np.float64)
    weight = rng.choice([0.0, 1.0, 2.0], size=400)
    params = {"size": size, "n_components": 1, "scale": True, "forgetting": forgetting}
    empty = Buffered(Sketch(m, 3, **params), size, of_labels=True)
    states = []
    for edges in ([0, 400], [0, *sorted(cuts), 400]):
        stream = empty
        # Dense rows may follow, at any place, and end with sparse ones.
        for start, stop in pairwise(sorted({*edges, min(dense_from, 400), min(dense_from + 30, 400)})):
            is_dense = dense_from <= start < dense_from + 30
            X = rows[start:stop] if is_dense else sparse.csr_array(rows[start:stop])
            stream = pickle.loads(pickle.dumps(stream.with_rows(X, Y[start:stop], weight[start:stop])))  # noqa: S301
            stream.current()
        states.append(stream.current().settle())
    assert states[0].n_rows == np.count_nonzero(weight)
    assert_same_states(*states)


def test_sparse_rows_that_wait_are_independent():
    X, Y = documents(900, 300)
    stream = sketched(X[:300], Y[:300], 20)
    chunk = X[300:310].copy()
    one, other = stream.with_rows(chunk, Y[300:310]), stream.with_rows(2 * chunk, Y[300:310])
    expected = one.current().x_squares.copy()
    chunk.data[:] = 1e9
    assert one.n_waiting == other.n_waiting == stream.n_waiting + 10
    np.testing.assert_array_equal(one.current().x_squares, expected)
    one_by_one = stream
    for row in range(300, 310):
        one_by_one = one_by_one.with_rows(X[[row]], Y[[row]])
    assert_same_states(one_by_one.current().settle(), one.current().settle())
    merged = one.merged(other).current()
    assert merged.n_rows == 620
    assert all(isinstance(piece, np.ndarray) for piece in merged.held.pieces)
    assert not one.without_waiting().n_waiting


def test_copies_are_independent():
    X, Y = spectrum_data(500, 50, 0.25)
    state = sketched(X, Y, 10).state
    twin = state.copy()
    before = state.apply(np.ones(50))[0]
    twin.update(X, Y)
    np.testing.assert_array_equal(state.apply(np.ones(50))[0], before)


def test_only_sketches_merge():
    with pytest.raises(TypeError, match="Only another Sketch"):
        Sketch(3, 1, size=4, n_components=1).merge(Gram(3, 1))
