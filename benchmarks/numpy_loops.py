"""The recursions of the online methods as loops over rows in NumPy.

Each takes X, y and the number of components, and returns the directions that its estimator has, one per column. Vectors
of the length of a row are worked on as a whole, and in place where that is natural. They are for rows in general
position: nothing here looks after constant columns, overflow or units. The first row is its own mean, and changes
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float64Array: TypeAlias = NDArray[np.float64]


def centred_rows(X: Float64Array) -> Iterator[tuple[int, Float64Array]]:
    """Yield the number of rows so far, and the row minus their mean, from the second one on."""
    mean = X[0].copy()
    for n, x in enumerate(X[1:], 2):
        mean += (x - mean) / n
        yield n, x - mean


def minus_mean_before(y: Float64Array) -> Float64Array:
    """Return y minus the mean of those before, and zero for the first."""
    before = np.cumsum(y)[:-1] / np.arange(1, len(y))
    return np.concatenate([[0.0], y[1:] - before])


def minus_mean(y: Float64Array) -> Float64Array:
    """Return y minus the mean up to and with each."""
    return y - np.cumsum(y) / np.arange(1, len(y) + 1)


def unit_columns(vectors: Float64Array) -> Float64Array:
    """Return the rows as columns of unit length."""
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T


def cipls_paper(X: Float64Array, y: Float64Array, c: int) -> Float64Array:
    """Algorithm 1 of the CIPLS paper, to the letter."""
    W, P, q = np.zeros((c, X.shape[1])), np.zeros((c, X.shape[1])), np.zeros(c)
    for n, row in centred_rows(X):
        u, v = row, y[n - 1]
        for i in range(c):
            W[i] += v * u
            t = np.sign(u @ W[i])
            P[i] += t * u
            q[i] += t * v
            u -= t * P[i]
            v -= t * q[i]
    return unit_columns(W)


def cipls_released(X: Float64Array, y: Float64Array, c: int) -> Float64Array:
    """What the code of the paper's authors computes: loadings take the score of the component before."""
    W, P, q = np.zeros((c, X.shape[1])), np.zeros((c, X.shape[1])), np.zeros(c)
    centred = minus_mean_before(y)
    for n, row in centred_rows(X):
        u, v = row, y[n - 1]
        W[0] += centred[n - 1] * u
        t = u @ W[0] / np.sqrt(W[0] @ W[0])
        P[0] += t * u
        q[0] += t * v
        for i in range(1, c):
            u -= t * P[i - 1]
            v -= t * q[i - 1]
            W[i] += v * u
            P[i] += t * u
            q[i] += t * v
            t = u @ W[i] / np.sqrt(W[i] @ W[i])
    return unit_columns(W)


def cipls_normalized(X: Float64Array, y: Float64Array, c: int) -> Float64Array:
    """Our variant: X'y, and for each direction r its product with X'X, which turns along when a row turns r.

    The direction turns from b/|b| to w/|w|. What X'X does to the difference is known along p = X'X r, where it is taken
    to be pp'/(r'p), and else taken to be the same in all directions.
    """
    m = X.shape[1]
    cross, P, squares, residuals = np.zeros(m), np.zeros((c, m)), np.zeros(c), np.zeros(c)
    centred = minus_mean_before(y)
    for n, row in centred_rows(X):
        u, weight = row, n / (n - 1)
        b = cross.copy()
        cross += centred[n - 1] * u
        w = cross.copy()
        rounding = 1e-12 * np.sqrt(w @ w)
        for i in range(c):
            p, w_length = P[i], np.sqrt(w @ w)
            if w_length <= rounding:
                break
            t = u @ w / w_length
            next_b = b
            if squares[i] > 0:
                b_length = np.sqrt(b @ b)
                next_b = b - b_length / squares[i] * p
                turned = p @ w / (w_length * squares[i])
                p *= turned
                p += residuals[i] / (m - i - 1) * (w / w_length - turned / b_length * b)
            p += weight * t * u
            squares[i] = p @ w / w_length
            u -= t / squares[i] * p
            w -= w_length / squares[i] * p
            residuals[i] += weight * (u @ u)
            b = next_b
    return pls_directions(cross, P)


def pls_directions(cross: Float64Array, actions: Float64Array) -> Float64Array:
    """Return the weights of PLS from X'y and the products of X'X with its rotations, by improved-kernel PLS.

    Products that were gathered row by row are not quite those of one matrix: what must be orthogonal is made so.
    """
    W, R, P = (np.zeros_like(actions) for _ in range(3))
    rest = cross.copy()
    for i, action in enumerate(actions):
        w = rest - (W[:i] @ rest) @ W[:i]
        W[i] = w / np.linalg.norm(w)
        R[i] = W[i] - (P[:i] @ W[i]) @ R[:i]
        P[i] = (action - (R[:i] @ action) @ P[:i]) / (action @ R[i])
        rest -= (rest @ R[i]) * P[i]
        rest -= (R[:i] @ rest) @ P[:i]
    return W.T


def ccipca(X: Float64Array, _y: Float64Array, c: int) -> Float64Array:
    """Candid covariance-free incremental PCA with amnesic parameter 2."""
    V = np.zeros((c, X.shape[1]))
    for n, u in centred_rows(X):
        turn_towards(V, u, n)
    return sorted_components(V).T


def turn_towards(V: Float64Array, u: Float64Array, n: int) -> None:
    """Take the n-th row into principal components, whose lengths are variances, and deflate it."""
    # One component more with every row, until all have begun.
    for i in range(min(len(V), n - 1)):
        v, age = V[i], n - 1 - i
        if age == 1:
            v[:] = np.sqrt(u @ u) * u
            break
        share = (1 + min(2.0, (age - 1) / 2)) / age
        gain = share * (u @ v) / np.sqrt(v @ v)
        v *= 1 - share
        v += gain * u
        u -= (u @ v / (v @ v)) * v


def sorted_components(V: Float64Array) -> Float64Array:
    """Return unit vectors, the one of the largest variance first."""
    lengths = np.linalg.norm(V, axis=1)
    order = np.argsort(-lengths)
    return V[order] / lengths[order, None]


def ipls(X: Float64Array, y: Float64Array, c: int, n_pca_components: int = 20) -> Float64Array:
    """Incremental PLS by way of principal components: X'y, and CCIPCA for what stands for X'X."""
    cross, V = np.zeros(X.shape[1]), np.zeros((n_pca_components, X.shape[1]))
    centred = minus_mean_before(y)
    for n, u in centred_rows(X):
        cross += centred[n - 1] * u
        turn_towards(V, u, n)
    components, variances = sorted_components(V), np.sort(np.linalg.norm(V, axis=1))[::-1]
    W = np.zeros((c, X.shape[1]))
    rest = cross
    for i in range(c):
        W[i] = rest / np.linalg.norm(rest)
        rest = (components @ W[i] * variances) @ components
        for _ in range(2):
            rest -= (W[: i + 1] @ rest) @ W[: i + 1]
    return W.T


def ipls_of_as_many(X: Float64Array, y: Float64Array, c: int) -> Float64Array:
    """The same with as many principal components as components."""
    return ipls(X, y, c, n_pca_components=c)


def olpls(X: Float64Array, y: Float64Array, c: int) -> Float64Array:
    """NIPALS online: a gradient step for the weights, and running regressions on the scores."""
    forgetting, eta, eta_loading = 0.999, 0.05, 0.01
    S, W, P = np.zeros((3, c, X.shape[1]))
    Q, T = np.zeros((2, c))
    centred = minus_mean(y)
    for n, row in centred_rows(X):
        u, v = row, centred[n - 1]
        for i in range(min(c, n - 1)):
            s, w, p = S[i], W[i], P[i]
            s *= forgetting
            s += v * u
            ss = s @ s
            if n - 2 == i:
                w[:] = s / np.sqrt(ss)
            else:
                sw = s @ w
                w *= 1 - eta * sw * sw / ss
                w += (eta * sw / ss) * s
                w /= np.sqrt(w @ w)
            t = u @ w
            T[i] += eta_loading * (t * t - T[i])
            gain = eta_loading * t / T[i]
            p *= 1 - gain * t
            p += gain * u
            Q[i] += gain * (v - t * Q[i])
            u -= t * p
            v -= t * Q[i]
    return W.T
