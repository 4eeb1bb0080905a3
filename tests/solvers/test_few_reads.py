"""Exact PLS in a few reads: the corrected Gram action, its convergence, and its estimated error."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from plstream.pls import largest_sine, subspace_sines
from plstream.rows import ArrayRows
from plstream.solvers import CorrectedGram, MultipassGram, Scaling, read_few_times, solve_scaled
from plstream.states import Buffered, Gram, Sketch
from tests.oracles import dense_pls, relative_error


def rows_of(X, y, batch_size=97, **more):
    rows = ArrayRows(X, np.reshape(y, (len(y), -1)).astype(float), batch_size=batch_size, **more)
    rows.in_memory = False
    return rows


def sketch_of(rows, n_components, size=24, *, scale=False, forgetting=1.0):
    empty = Sketch(
        rows.n_columns, rows.n_targets, size=size, n_components=n_components, scale=scale, forgetting=forgetting
    )
    stream = Buffered(empty, size)
    for block in rows.blocks():
        stream = stream.with_rows(block.X, block.Y, block.weight)
    return stream.current()


def flat(n=900, m=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * np.arange(1, m + 1) ** -0.25
    return X + 2, X @ rng.normal(size=m) + rng.normal(size=n)


def solve(rows, n_components, *, scale=False, tolerance=0.0, most=None, forgetting=1.0, state=None):
    """Return factors, reads and the error stated after a few reads."""
    state = state or sketch_of(rows, n_components, scale=scale, forgetting=forgetting)
    reads = MultipassGram(rows, moments=state, forgetting=forgetting)
    gram = read_few_times(reads, state, n_components, scale=scale, tolerance=tolerance, most=most or n_components + 1)
    scaling = Scaling.of(state, scale=scale)
    return solve_scaled(state, gram, scaling, n_components, quiet=True), reads.n_reads, gram.subspace_error


def exact(rows, n_components, *, scale=False, forgetting=1.0):
    gram = MultipassGram(rows, forgetting=forgetting).read_moments()
    return solve_scaled(gram.moments, gram, Scaling.of(gram.moments, scale=scale), n_components, quiet=True)


def test_sines_for_every_number_of_columns():
    rng = np.random.default_rng(0)
    W, other = (np.linalg.qr(rng.normal(size=(20, 5)))[0] for _ in range(2))
    close = np.linalg.qr(W + 1e-9 * other)[0]
    for matrix in (other, close):
        expected = [largest_sine(W[:, :k], matrix[:, :k]) for k in range(1, 6)]
        np.testing.assert_allclose(subspace_sines(W, matrix), expected, rtol=1e-5)


def test_the_action_is_exact_on_what_was_read_and_semidefinite():
    X, y = flat()
    rows, rng = rows_of(X, y), np.random.default_rng(1)
    x = X - X.mean(axis=0)
    S = x.T @ x
    gram = CorrectedGram(sketch_of(rows, 3), np.ones(120))
    for _ in range(3):
        V = rng.normal(size=(4, 120))
        gram.correct(V, V @ S, V @ S @ V.T)
        for v in V:
            action, square = gram.apply(v)
            np.testing.assert_allclose(action, S @ v, atol=1e-10 * np.abs(S @ v).max())
            assert square == pytest.approx(v @ S @ v)
    assert len(gram.directions) == 12
    S1 = np.array([gram.apply(v)[0] for v in np.eye(120)])
    # The sketch is in float32.
    np.testing.assert_allclose(S1, S1.T, atol=1e-5 * np.abs(S1).max())
    assert np.linalg.eigvalsh((S1 + S1.T) / 2).min() > -1e-5 * np.abs(S1).max()


def test_the_same_direction_twice_is_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    S = X.T @ X
    gram, V = CorrectedGram(Gram(6, 1).update(X, X[:, :1]), np.ones(6)), rng.normal(size=(2, 6))
    for block in (V, V + 1e-12, np.concatenate([V, V[:1]])):
        gram.correct(block, block @ S, block @ S @ block.T)
        assert len(gram.directions) == 2


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "weights"])
def test_products_of_a_block_of_vectors(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 7)) * (rng.uniform(size=(60, 7)) > 0.5)
    weight = rng.uniform(0.5, 2, 60) if kind == "weights" else None
    given = {"sparse": sparse.csr_array, "float32": np.float32}.get(kind, np.asarray)(X)
    V = rng.normal(size=(3, 7))
    rows = rows_of(given, X[:, :1], weight=weight)
    A, products = MultipassGram(rows).read_moments().apply_block(V)
    x = (X - np.average(X, axis=0, weights=weight)) * np.sqrt(np.ones(60) if weight is None else weight)[:, None]
    tolerance = 1e-5 if kind == "float32" else 1e-11
    np.testing.assert_allclose(A, V @ x.T @ x, atol=tolerance * 100)
    np.testing.assert_allclose(products, V @ x.T @ x @ V.T, atol=tolerance * 100)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("n_components", [1, 4, 8])
def test_exact_after_a_read_for_every_component_and_one_more(n_components, scale):
    X, y = flat()
    rows = rows_of(X, y)
    factors, n_reads, error = solve(rows, n_components, scale=scale)
    expected = exact(rows, n_components, scale=scale)
    assert n_reads == n_components + 1
    assert not error.any()
    assert largest_sine(factors.x_weights, expected.x_weights) < 1e-12
    assert relative_error(factors.coefficients(), expected.coefficients()) < 1e-12
    assert relative_error(factors.x_loadings, expected.x_loadings) < 1e-10


@pytest.mark.parametrize("n_targets", [1, 3])
def test_every_read_brings_it_closer_by_the_error_it_states(n_targets):
    X, _ = flat()
    rng = np.random.default_rng(2)
    rows = rows_of(X, X @ rng.normal(size=(120, n_targets)) + rng.normal(size=(900, n_targets)))
    expected, state = exact(rows, 7), sketch_of(rows, 7, size=48)
    errors, stated = [], []
    for most in range(1, 8):
        factors, n_reads, error = solve(rows, 7, most=most, state=state)
        assert n_reads == most
        # The first components are exact one after the other.
        assert largest_sine(factors.x_weights[:, :most], expected.x_weights[:, :most]) < 1e-11
        assert not error[: most - 1].any()
        errors.append(
            max(
                largest_sine(factors.x_weights, expected.x_weights),
                relative_error(factors.coefficients(), expected.coefficients()),
            )
        )
        stated.append(error.max())
    for before, after in pairwise(errors):
        assert after < before / 2
    assert errors[4] < 1e-3 * errors[0]
    for error, estimate in zip(errors, stated, strict=True):
        assert error / 3 < estimate < max(30 * error, 1e-3)
    assert stated[0] < 1


@pytest.mark.parametrize("tolerance", [1e-1, 1e-4, 1e-8])
@pytest.mark.parametrize(
    "load", [load_diabetes, load_breast_cancer, load_digits], ids=["diabetes", "breast cancer", "digits"]
)
def test_stops_within_the_tolerance_on_real_data(load, tolerance):
    X, y = load(return_X_y=True)
    X, c = X[:, X.std(axis=0) > 0], 5
    rows = rows_of(X, y)
    state = sketch_of(rows, c, size=8, scale=True)
    factors, n_reads, error = solve(rows, c, scale=True, tolerance=tolerance, state=state)
    expected = exact(rows, c, scale=True)
    assert n_reads <= c + 1
    assert error.max() <= tolerance
    assert largest_sine(factors.x_weights, expected.x_weights) <= tolerance
    assert relative_error(factors.coefficients(), expected.coefficients()) <= tolerance


def test_a_gram_matrix_takes_one_read():
    X, y = flat()
    rows = rows_of(X, y)
    state = Gram(120, 1).update(X, y[:, None])
    factors, n_reads, error = solve(rows, 6, tolerance=1e-9, state=state)
    assert n_reads == 1
    assert 0 < error.max() < 1e-9
    W = dense_pls(X, y[:, None], 6, scale=False)[1]
    assert largest_sine(factors.x_weights, W) < error.max()


@pytest.mark.parametrize("size", [1e4, 1e7])
def test_ill_conditioned_data_is_read_until_it_is_exact(size):
    """A trend of all columns costs a Gram matrix the rest of the digits: it is not trusted."""
    X, y = flat(m=30)
    rows = rows_of(X + size * np.random.default_rng(3).normal(size=(900, 1)), y)
    expected = exact(rows, 4)
    for state in (Gram(30, 1), None):
        if state is not None:
            for block in rows.blocks():
                state = state.update(block.X, block.Y)  # noqa: PLW2901
        factors, n_reads, _ = solve(rows, 4, tolerance=1e-6, state=state)
        assert 1 < n_reads <= 5
        assert factors.n_components == 4
        assert largest_sine(factors.x_weights, expected.x_weights) < 1e-6
        assert relative_error(factors.coefficients(), expected.coefficients()) < 1e-6


@pytest.mark.parametrize("rank", [1, 3])
def test_rank_is_that_of_the_rows(rank):
    X, y = flat()
    rows = rows_of(X[:, :rank] @ np.random.default_rng(0).normal(size=(rank, 120)), y)
    factors, n_reads, _ = solve(rows, 6, tolerance=1e-3)
    assert factors.n_components == exact(rows, 6).n_components == rank
    assert n_reads == rank + 1


@pytest.mark.parametrize("kind", ["offset", "1e150", "1e-150", "constant columns", "units", "wide", "forgetting"])
@pytest.mark.parametrize("scale", [True, False])
def test_hostile_data(kind, scale):
    X, y = flat(m=40)
    forgetting = 0.995 if kind == "forgetting" else 1.0
    if kind == "constant columns":
        X[:, 3:5] = 2.5
    elif kind == "units":
        X *= 10.0 ** np.random.default_rng(0).uniform(-5, 5, 40)
    elif kind == "wide":
        X, y = np.random.default_rng(0).normal(size=(100, 300)), y[:100]
    elif kind != "forgetting":
        X = X + 1e8 if kind == "offset" else X * float(kind)
    rows = rows_of(X, y)
    expected = exact(rows, 5, scale=scale, forgetting=forgetting)
    factors, n_reads, error = solve(rows, 5, scale=scale, forgetting=forgetting, tolerance=1e-5)
    assert n_reads <= 6
    assert largest_sine(factors.x_weights, expected.x_weights) <= 1e-5
    assert np.isfinite(error).all()
