"""The recursions of CIPLS, and of released code, by plain loops that follow the formulas; and data for them."""

import numpy as np


def gaussian_data(n, seed=0):
    """Return 12 Gaussian columns of variances from 12 to 0.5, and a response that is linear but for unit noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) * np.sqrt(np.geomspace(12, 0.5, 12))
    b = rng.standard_normal(12)
    return X, X @ b + rng.standard_normal(n)


def plain_paper(X, y, c):
    """Return W, P (one row per component) and q of Algorithm 1."""
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
    """Return X'y and the products of X'X with the rotations, one row per component, as the recursion knows them."""
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


def unit(v):
    length = np.linalg.norm(v)
    return v / length if length else v


def plain_released_directions(X, y, n_directions, amnesic=2.0):
    """Return X'y, and the vectors that IPLS as released has for principal components."""
    V, x_sum, y_sum, cross = np.zeros((n_directions, X.shape[1])), X[0], y[0], np.zeros(X.shape[1])
    V[0] = X[0]
    for n in range(2, len(X) + 1):
        x, v = X[n - 1], y[n - 1]
        before, x_sum = x_sum / (n - 1), x_sum + x
        u = x - x_sum / n
        cross = cross - y_sum * (x_sum / n - before) + v * u
        y_sum = y_sum + v
        for i in range(min(n, n_directions)):
            if i == n - 1:
                V[i] = u
            else:
                weight = (n - 1 - amnesic) / n
                V[i] = (1 - weight) * V[i] + weight * (u @ V[i] / (np.linalg.norm(V[i]) + 2.0**-52)) * u
                u = u - (u @ V[i]) / (V[i] @ V[i]) * V[i] if V[i] @ V[i] else u
    return cross, V


def plain_released_weights(cross, V, c):
    """Return the weights that IPLS as released makes of these, one row per component."""
    k, W = unit(cross), [unit(cross)]
    for _ in range(c - 1):
        k = unit(sum(np.linalg.norm(v) * (unit(v) @ k) * unit(v) for v in V))
        w = k
        for before in W:
            w = w - (w @ before) * before
        W.append(unit(w))
    return np.array(W)


def plain_released_olpls(X, y, c, forgetting=0.2, eta=0.01):
    """Return W, P (one row per component) and C of OLPLS as released, whose step for loadings is that of weights."""
    S, W, P, C = np.zeros((c, X.shape[1])), np.zeros((c, X.shape[1])), np.zeros((c, X.shape[1])), np.zeros(c)
    x, v = X[0], y[0]
    for i in range(c):
        S[i] = v * x
        W[i] = unit(S[i])
        t = x @ W[i]
        P[i], C[i] = x * t / (t * t), v * t / (t * t)
        x, v = x - t * 0.5 * P[i], v - t * 0.5 * C[i]
        P[i], C[i] = 0.6 * P[i], 0.6 * C[i]
    for n in range(1, len(X)):
        x, v = X[n], y[n]
        for i in range(c):
            S[i] = forgetting * S[i] + (1 - forgetting) * v * x
            s, w = S[i], W[i]
            value = (s @ w) ** 2 / (w @ w)
            multiplier = value - value / np.linalg.norm(w)
            # The first term should be (s.w) s.
            gradient = (s @ s) * w / (w @ w) - (s @ w) ** 2 * w / (w @ w) ** 2 - multiplier * w
            W[i] = w + eta * gradient
            t = x @ W[i]
            P[i] = P[i] + eta * t * (x - t * P[i])
            C[i] = C[i] + eta * t * (v - t * C[i])
            x, v = x - t * P[i], v - t * C[i]
    return W, P, C


def plain_released_sgdpls(X, Y, c, seed, *, n_epochs, eta=0.001):
    """Return the bases that SGDPLS as released projects rows to, and the matrix of y, one column per component."""
    random = np.random.RandomState(seed)
    U = np.linalg.qr(random.randn(X.shape[1], c))[0]
    V = random.randn(Y.shape[1], c)
    for _ in range(n_epochs):
        for x, y in zip(X, Y, strict=True):
            U, V = U + eta * np.outer(x, y) @ V, V + eta * np.outer(y, x) @ U
    return np.linalg.qr(U)[0], V
