"""Independent computations to test against: plain, slow and obviously right."""

import numpy as np


def dense_pls(X, Y, n_components, *, scale=True, weight=None):
    """PLS2 by deflating X and taking a dense SVD for each component; returns the coefficients, (m, q), and W, P, Q, T.

    Signs are not fixed. Weights count as repeated rows.
    """
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    E, x_scale = _standardise(X, weight, scale)
    F, y_scale = _standardise(Y.reshape(len(Y), -1), weight, scale)
    root = np.sqrt(weight)[:, None]
    E, F = E * root, F * root
    W, P, Q, T = [], [], [], []
    for _ in range(n_components):
        w = np.linalg.svd(E.T @ F, full_matrices=False)[0][:, 0]
        t = E @ w
        p, q = E.T @ t / (t @ t), F.T @ t / (t @ t)
        E, F = E - np.outer(t, p), F - np.outer(t, q)
        W.append(w)
        P.append(p)
        Q.append(q)
        T.append(t)
    W, P, Q, T = (np.array(columns).T for columns in (W, P, Q, T))
    coefficients = W @ np.linalg.solve(P.T @ W, Q.T)
    return coefficients * y_scale / x_scale[:, None], W, P, Q, T


def _standardise(A, weight, scale):
    mean = weight @ A / weight.sum()
    centred = A - mean
    deviation = np.sqrt(weight @ centred**2 / (weight.sum() - 1)) if scale else np.ones(A.shape[1])
    deviation[deviation == 0] = 1.0
    return centred / deviation, deviation


def relative_error(actual, expected):
    """Largest difference as a share of the largest expected entry."""
    return np.abs(np.asarray(actual) - expected).max() / np.abs(expected).max()


def regression_data(n, m, q=1, seed=0, *, noise=0.5):
    """Correlated columns of unequal variance and mean, and responses that depend on all of them; y is 1-D for q = 1."""
    rng = np.random.default_rng(seed)
    k = min(n, m)
    X = rng.normal(size=(n, k)) * np.geomspace(3.0, 0.3, k) @ rng.normal(size=(k, m)) + 0.1 * rng.normal(size=(n, m))
    X += rng.normal(scale=5.0, size=m)
    Y = X @ rng.normal(size=(m, q)) / np.sqrt(m) + noise * rng.normal(size=(n, q))
    return X, Y[:, 0] if q == 1 else Y


def precise_pls(X, y, n_components, *, scale=True):
    """Coefficients of PLS with one response, from deflations in extended precision."""
    x, f = np.asarray(X, dtype=np.longdouble), np.asarray(y, dtype=np.longdouble)
    x, f = x - x.mean(axis=0), f - f.mean()
    deviation = np.sqrt((x**2).sum(axis=0) / (len(x) - 1)) if scale else np.ones(x.shape[1], np.longdouble)
    x = x / deviation
    R, P, coefficients = [], [], np.zeros(x.shape[1], np.longdouble)
    for _ in range(n_components):
        w = f @ x
        w /= np.sqrt((w**2).sum())
        t = x @ w
        p, q = t @ x / (t @ t), f @ t / (t @ t)
        x, f = x - np.outer(t, p), f - t * q
        r = w
        # The rotations are dual to the loadings.
        for earlier, loading in zip(R, P, strict=True):
            r = r - earlier * (loading @ w)
        coefficients += r * q
        R.append(r)
        P.append(p)
    return coefficients / deviation
