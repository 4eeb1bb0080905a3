"""The recursions of CIPLS by plain loops that follow the formulas, and data with separated components."""

import numpy as np


def gaussian_data(n, seed=0):
    """Return 12 Gaussian columns of variances from 12 to 0.5, and a response that is linear but for unit noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) * np.sqrt(np.geomspace(12, 0.5, 12))
    b = rng.standard_normal(12)
    return X, X @ b + rng.standard_normal(n)


def plain_paper(X, y, c):
    """Return W, P (one row a component) and q of Algorithm 1."""
    m = X.shape[1]
    mean, W, P, q = np.zeros(m), np.zeros((c, m)), np.zeros((c, m)), np.zeros(c)
    for n, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        mean = (n - 1) / n * mean + x / n
        u, v = x - mean, label
        for i in range(c):
            W[i] = W[i] + v * u
            t = np.sign(u @ W[i])
            P[i] = P[i] + t * u
            q[i] = q[i] + t * v
            u = u - t * P[i]
            v = v - t * q[i]
    return W, P, q


def plain_released(X, y, c):
    """Return W, P and q of the released code, with sums of rows and labels as it keeps them."""
    m = X.shape[1]
    x_sum, y_sum, W, P, q = X[0].copy(), y[0], np.zeros((c, m)), np.zeros((c, m)), np.zeros(c)
    for n in range(2, len(X) + 1):
        x, v = X[n - 1], y[n - 1]
        before = x_sum / (n - 1)
        x_sum = x_sum + x
        u = x - x_sum / n
        W[0] = W[0] - y_sum * (x_sum / n - before) + v * u
        y_sum = y_sum + v
        t = u @ W[0] / np.linalg.norm(W[0])
        P[0] = P[0] + t * u
        q[0] = q[0] + t * v
        for i in range(1, c):
            u = u - t * P[i - 1]
            v = v - t * q[i - 1]
            W[i] = W[i] + v * u
            P[i] = P[i] + t * u
            q[i] = q[i] + t * v
            t = u @ W[i] / np.linalg.norm(W[i])
    return W, P, q


def plain_normalized(X, y, c, amnesic=0.0):
    """Return X'y and the products of X'X with the rotations, one row a component, as the recursion knows them."""
    m = X.shape[1]
    C, G, last, left = np.zeros(m), np.zeros((c, m)), np.zeros((c, m)), np.zeros(c + 1)
    for n in range(2, len(X) + 1):
        u = X[n - 1] - X[:n].mean(axis=0)
        C = C + u * (y[n - 1] - y[: n - 1].mean())
        w = C
        amnesia = min(amnesic, max(0, (n - 3) / 2))
        old, new = 1 - amnesia / max(1, n - 2), (1 + amnesia) * n / (n - 1)
        left[0] = old * left[0] + new * (u @ u)
        for i in range(c):
            if np.linalg.norm(w) <= 1e-12 * np.linalg.norm(C):
                break
            unit = w / np.linalg.norm(w)
            if last[i].any():
                # X'X is G G' / (G.direction) along G, and the same in all other directions.
                turn = unit - last[i]
                along = G[i] @ turn / (G[i] @ last[i])
                G[i] = old * (G[i] + along * G[i] + left[i + 1] / max(1, m - i - 1) * (turn - along * last[i]))
            t = u @ unit
            G[i] = G[i] + new * t * u
            last[i] = unit
            square = G[i] @ unit
            assert 0 < square <= 1.01 * left[i]
            u = u - t * G[i] / square
            w = w - np.linalg.norm(w) * G[i] / square
            left[i + 1] = old * left[i + 1] + new * (u @ u)
    return C, G
