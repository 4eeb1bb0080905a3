"""Principal components one row at a time, by loops that follow the formulas, and data that has some."""

import numpy as np


def constant(amnesic):
    return lambda _age: amnesic


def schedule(n1, n2, r):
    def amnesia(age):
        if age < n1:
            return 0.0
        return 2 * (age - n1) / (n2 - n1) if age < n2 else 2 + (age - n2) / r

    return amnesia


def plain_ccipca(X, n_components, amnesia):
    """Return the vectors of CCIPCA, whose lengths are variances, the longest first; ``amnesia`` gives l for an age."""
    vectors, ages = [], []
    for n in range(1, len(X) + 1):
        u = X[n - 1] - X[:n].mean(axis=0)
        for i in range(n_components):
            if i == len(vectors):
                if np.linalg.norm(u) > 1e-12 * np.linalg.norm(X - X[0], axis=1).max():
                    vectors.append(np.linalg.norm(u) * u)
                    ages.append(1)
                break
            ages[i] += 1
            age, amnesic, v = ages[i], min(amnesia(ages[i]), (ages[i] - 1) / 2), vectors[i]
            vectors[i] = (age - 1 - amnesic) / age * v + (1 + amnesic) / age * (u @ v / np.linalg.norm(v)) * u
            unit = vectors[i] / np.linalg.norm(vectors[i])
            u = u - (u @ unit) * unit
    return np.array(sorted(vectors, key=np.linalg.norm, reverse=True))


def gaussian_factors(seed, n=5000, m=12):
    """Return rows of well separated variances along random directions, and a response that needs all directions."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, m))
    directions = np.linalg.qr(rng.normal(size=(m, m)))[0]
    X = factors * np.geomspace(16, 0.5, m) @ directions + rng.normal(scale=5.0, size=m)
    return X, factors.sum(axis=1) + 0.5 * np.sqrt(m) * rng.normal(size=n)


def cosines(A, B):
    """Return the absolute cosines of the angles between the columns of two matrices."""
    return np.abs((A * B).sum(axis=0)) / np.linalg.norm(A, axis=0) / np.linalg.norm(B, axis=0)
