"""Higher-order components: how well classes are told apart without the first score, and whether that is what is left.

If the others are near copies of the first component, it has not been dropped at all. So there are controls: what is
left when the others lose their regression on the first score, or their parts along its direction, and how close to the
first any other comes. Where every class has a model, all of their first scores count, for one model's others may well
be copies of another's first.

The first direction of PLS for two classes is that of the difference of their means. Whatever is orthogonal to it has
equal means in the training rows, so that the second control is at chance for every method that has this direction: it
shows how much of the rest is due to it. The first control changes nothing in PLS, whose scores are uncorrelated.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Float64Array
from .methods import METHODS, Projection, fitted, in_blocks, scores_of
from .protocol import Cell, NotPossibleError, Setting, choose_components
from .task import Rows, Task


def higher_order_cell(setting: Setting) -> list[Cell]:
    """Test without the first score, with it, and without its direction."""
    chosen, _ = choose_components(setting, least=2)
    task, train, test = setting.task, setting.train, setting.test
    projection = fitted(METHODS[setting.method], task, train, chosen, setting.seed, setting.settings)
    if projection.n_components < 2:
        raise NotPossibleError(projection.limited)
    S, S_test = scores_of(projection, task, train), scores_of(projection, task, test)
    others = _without_first(projection)
    mean = task.X[train[:1]][0]
    T, T_test = (_products(task, rows, mean, others) for rows in (train, test))
    R, R_test = residuals(S, S_test)
    cell: Cell = {
        "n_components": projection.n_components,
        "accuracy": setting.accuracy(train, S[:, :, 1:], test, S_test[:, :, 1:]),
        "accuracy_all": setting.accuracy(train, S, test, S_test),
        "accuracy_without_first": setting.accuracy(train, T, test, T_test),
        "accuracy_residual": setting.accuracy(train, R, test, R_test),
        "largest_cosine": largest_cosine(projection.weights()),
        "largest_correlation": _largest_correlation(S),
    }
    return [cell]


def largest_cosine(weights: Float64Array) -> float:
    """Return the largest cosine of a first direction with one that is not, of any models, without regard to sign.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.higher_order import largest_cosine
    >>> largest_cosine(np.array([[[1.0, 0.0], [3.0, -4.0], [0.0, 1.0]]]))
    0.6
    """
    units = weights / _or_one(np.linalg.norm(weights, axis=2, keepdims=True))
    return float(np.abs(np.einsum("kj,lij->kli", units[:, 0], units[:, 1:])).max())


def residuals(S: Array, S_test: Array) -> tuple[Array, Array]:
    """Return all scores but the first of each model, minus their regressions on all first ones in the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.higher_order import residuals
    >>> S = np.array([[[1.0, 2.0]], [[-1.0, -2.0]]])
    >>> [(np.round(part, 9) + 0.0).tolist() for part in residuals(S, S[:1] + 1)]
    [[[0.0], [0.0]], [[-1.0]]]
    """
    mean = S.mean(axis=0)
    (firsts, others), (test_firsts, test_others) = (_firsts_and_others(part - mean) for part in (S, S_test))
    scale = _or_one(np.abs(firsts).max(axis=0))
    slopes = np.linalg.lstsq(firsts / scale, others, rcond=None)[0]
    return others - firsts / scale @ slopes, test_others - test_firsts / scale @ slopes


def _firsts_and_others(S: Array) -> tuple[Array, Array]:
    return S[:, :, 0], S[:, :, 1:].reshape(len(S), -1)


def _without_first(projection: Projection) -> Float64Array:
    """Return the directions of all scores but the first ones, minus their parts along these, in one matrix."""
    directions = projection.directions()
    firsts = directions[:, 0] / _or_one(np.linalg.norm(directions[:, 0], axis=1, keepdims=True))
    # An orthonormal basis, without what the directions of the last class add, which is nothing but rounding errors.
    _, sizes, basis = np.linalg.svd(firsts, full_matrices=False)
    basis = basis[sizes > 1e-9 * sizes.max()]
    others = directions[:, 1:].reshape(-1, directions.shape[2])
    return np.asarray(others - others @ basis.T @ basis)


def _products(task: Task, rows: Rows, mean: Array, directions: Float64Array) -> Float64Array:
    """Return rows less any one row, times directions: a classifier of standardised scores does not mind which."""
    return np.concatenate([(task.X[block] - mean) @ directions.T for block in in_blocks(rows, task)])


def _largest_correlation(S: Array) -> float:
    """Return the largest correlation of a first score with one that is not, of any models."""
    centred = S - S.mean(axis=0)
    units = centred / _or_one(np.linalg.norm(centred, axis=0))
    firsts, others = _firsts_and_others(units)
    return float(np.abs(firsts.T @ others).max())


def _or_one(numbers: Array) -> Array:
    return np.where(numbers > 0, numbers, 1.0)
