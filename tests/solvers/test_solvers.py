"""The PLS solver: invariants of PLS, and stopping at the rank."""

import numpy as np
import pytest
from scipy import sparse

from plstream.rows import ArrayRows
from plstream.solvers import MultipassGram, solve_pls
from plstream.states import Gram
from tests.oracles import dense_pls, regression_data, relative_error


def solve(X, Y, n_components, kind):
    state = Gram(*np.shape(X)[1:], Y.shape[1]).update(X, Y) if kind == "gram" else None
    gram = state or MultipassGram(ArrayRows(X, Y, batch_size=11)).read_moments()
    moments = state or gram.moments
    return solve_pls(
        moments.cross,
        gram,
        n_components,
        x_squares=moments.x_squares.sum(),
        y_squares=moments.y_squares.sum(),
    )


kinds = pytest.mark.parametrize("kind", ["gram", "multipass"])


@kinds
@pytest.mark.parametrize("q", [1, 3])
def test_invariants(kind, q):
    X, Y = regression_data(60, 12, q)
    Y = Y.reshape(60, -1)
    factors = solve(X, Y, 8, kind)
    W, P, R = factors.x_weights, factors.x_loadings, factors.x_rotations
    T = (X - X.mean(axis=0)) @ R
    np.testing.assert_allclose(W.T @ W, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(P.T @ R, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(np.tril(P.T @ W, -1), 0, atol=1e-9)
    squares = T.T @ T
    np.testing.assert_allclose(np.diag(squares), factors.score_squares, rtol=1e-9)
    np.testing.assert_allclose(squares - np.diag(np.diag(squares)), 0, atol=1e-9 * squares.max())
    assert (W[np.argmax(np.abs(W), axis=0), range(8)] > 0).all()


@kinds
def test_weights_span_the_krylov_space(kind):
    """With one response, W is Gram-Schmidt on w, Sw, S^2 w, ... (Helland, 1988)."""
    X, y = regression_data(60, 6)
    x = X - X.mean(axis=0)
    S, w = x.T @ x, x.T @ (y - y.mean())
    krylov = [w / np.linalg.norm(w)]
    for _ in range(3):
        v = S @ krylov[-1]
        for _ in range(2):
            v -= np.array(krylov).T @ (np.array(krylov) @ v)
        krylov.append(v / np.linalg.norm(v))
    cosines = np.sum(np.array(krylov).T * solve(X, y[:, None], 4, kind).x_weights, axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1, atol=1e-10)


@kinds
def test_all_components_are_least_squares(kind):
    X, y = regression_data(60, 6)
    x = X - X.mean(axis=0)
    expected = np.linalg.lstsq(x, y - y.mean(), rcond=None)[0]
    assert relative_error(solve(X, y[:, None], 6, kind).coefficients()[:, 0], expected) < 1e-8


@kinds
def test_stops_when_y_is_explained(kind):
    """Orthonormal X: one component explains all of y, though X has more to give."""
    x = np.random.default_rng(0).normal(size=(50, 6))
    x = np.linalg.qr(x - x.mean(axis=0))[0]
    with pytest.warns(UserWarning, match="only 1 component"):
        factors = solve(x, (x[:, 0] + 2 * x[:, 1])[:, None], 4, kind)
    assert factors.n_components == 1


def test_cross_covariance_is_not_modified():
    X, Y = regression_data(30, 5, 2)
    state = Gram(5, 2).update(X, Y)
    before = state.cross.copy()
    solve_pls(state.cross, state, 3, x_squares=state.x_squares.sum(), y_squares=state.y_squares.sum())
    np.testing.assert_array_equal(state.cross, before)


def test_sparse_action_equals_dense():
    X, Y = regression_data(40, 6, 2)
    X = np.where(np.abs(X) > 4, X, 0)
    v = np.random.default_rng(0).normal(size=6)
    dense, rows = (
        MultipassGram(ArrayRows(A, Y, batch_size=9)).read_moments().apply(v) for A in (X, sparse.csc_array(X))
    )
    np.testing.assert_allclose(rows[0], dense[0], rtol=1e-10)
    assert rows[1] == pytest.approx(dense[1], rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_sparse_rows_with_large_means_stop_at_the_rank(seed):
    """Their products are centred, so rounding errors grow with the means."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(40, 2))
    X = scores @ rng.normal(size=(2, 20)) + 300
    rows = ArrayRows(sparse.csr_array(X), scores @ rng.normal(size=(2, 1)))
    gram = MultipassGram(rows).read_moments()
    moments = gram.moments
    squares = {"x_squares": moments.x_squares.sum(), "y_squares": moments.y_squares.sum()}
    assert solve_pls(moments.cross, gram, 5, **squares, quiet=True).n_components == 2


def test_oracle_agrees_with_itself():
    """The oracle's coefficients are W(P'W)^-1 Q', and its scores are orthogonal."""
    X, Y = regression_data(60, 6, 3)
    _, _, _, _, T = dense_pls(X, Y, 4)
    squares = T.T @ T
    np.testing.assert_allclose(squares - np.diag(np.diag(squares)), 0, atol=1e-9 * squares.max())


class InconsistentAction:
    """An action that removes nothing from the cross-covariance, as of a damaged state."""

    rounding = variance_resolution = 1e-15

    def apply(self, v):
        return np.zeros_like(v), 1.0


def test_an_action_that_does_not_fit_ends_the_components():
    factors = solve_pls(np.eye(3)[:, :1], InconsistentAction(), 2, x_squares=1.0, y_squares=1.0, quiet=True)
    assert factors.n_components == 1
    np.testing.assert_array_equal(factors.x_weights, [[1, 0], [0, 0], [0, 0]])
