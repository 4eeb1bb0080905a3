"""Statistics of single features: ranks, deviations, and differences between classes.

They are computed for blocks of features, on all cores. Functions of a block take features as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .._core.progress import track
from .._core.threads import ordered_map
from .._core.types import Array, Float64Array

Result = TypeVar("Result")

_BLOCK_BYTES = 8 << 20
# With few rows, the results take more memory than the features.
_LEAST_ROWS = 256
# The value that the authors' code of infFS_S uses for an empty bin.
_EMPTY = 1e-5


def map_features(function: Callable[[Float64Array], Result], X: Array, label: str) -> Iterator[tuple[slice, Result]]:
    """Yield blocks of columns in order, with ``function`` of each.

    The function receives the columns of a block as the rows of a new array, which it may modify.
    """
    n, m = X.shape
    width = max(1, _BLOCK_BYTES // (8 * max(n, _LEAST_ROWS)))
    blocks = [slice(start, min(start + width, m)) for start in range(0, m, width)]

    def run(columns: slice) -> tuple[slice, Result]:
        return columns, function(np.array(X[:, columns].T, dtype=np.float64, order="C"))

    results = ordered_map(run, blocks)
    return track(results, label, m, lambda result: result[0].stop - result[0].start, "features")


def per_feature(function: Callable[[Float64Array], tuple[Array, ...]], X: Array, label: str) -> list[Any]:
    """Return the arrays that a function returns for blocks of columns, each concatenated over all blocks."""
    results = [result for _, result in map_features(function, X, label)]
    return [np.concatenate(parts) for parts in zip(*results, strict=True)]


def normalised(values: Float64Array) -> Float64Array:
    """Return the values shifted and scaled to [0, 1]; zeros if they are all equal."""
    least, largest = values.min(), values.max()
    if least == largest:
        return np.zeros_like(values)
    unit = np.abs([least, largest]).max()
    shifted = values / unit - least / unit
    scaled: Float64Array = shifted / shifted.max()
    return scaled


def centred_ranks(features: Float64Array) -> NDArray[np.intp]:
    """Return centred ranks (average ranks for ties), times two so that they are integers."""
    n = features.shape[1]
    ranks: NDArray[np.intp] = (2.0 * rankdata(features, axis=1) - (n + 1)).astype(np.intp)
    return ranks


def deviations(X: Array) -> Float64Array:
    """Return the standard deviation of every feature (n - 1 degrees of freedom), relative to a common unit."""
    numbers, exponents = per_feature(_deviations, X, "deviations")
    # Relative to the largest, because the deviation of the largest floats would overflow.
    in_unit: Float64Array = np.ldexp(numbers, exponents - exponents.max())
    return in_unit


def _deviations(features: Float64Array) -> tuple[Float64Array, NDArray[np.intc]]:
    """Return standard deviations as mantissas and exponents of two."""
    exponents = to_common_size(features)
    return features.std(axis=1, ddof=1), exponents


def fisher(X: Array, classes: NDArray[np.intp], *, perfect: float | None = None) -> Float64Array:
    """Return Fisher's criterion of every feature: the squared difference of two class means over the variances.

    It is infinite for a feature that is constant in both classes but differs between them. Such a feature receives the
    criterion of the best other feature, or the squared difference divided by ``perfect``.
    """
    ratios, differences = per_feature(partial(_fisher, classes=classes), X, "Fisher's criterion")
    bounded = np.isfinite(ratios)
    if perfect is not None:
        at_most = np.sqrt(np.finfo(np.float64).max)
        return np.where(bounded, ratios, np.clip(differences, -at_most, at_most) ** 2 / perfect)
    best = ratios.max(where=bounded, initial=0.0) or 1.0
    return np.where(bounded, ratios, best)


def _fisher(features: Float64Array, classes: NDArray[np.intp]) -> tuple[Float64Array, Float64Array]:
    """Return the ratios, infinite where variances are zero and means differ, and the differences of the means."""
    exponents = to_common_size(features)
    first, second = features[:, classes == 0], features[:, classes == 1]
    variance = _variance(first) + _variance(second)
    # The mean of equal numbers may differ from them by a rounding error.
    difference = np.where(variance == 0, second[:, 0] - first[:, 0], second.mean(axis=1) - first.mean(axis=1))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(difference == 0, 0.0, difference**2 / variance)
        return ratios, np.ldexp(difference, exponents)


def _variance(features: Float64Array) -> Float64Array:
    """Return variances with n - 1 degrees of freedom; exactly zero for a single row and for equal rows."""
    if features.shape[1] < 2:
        return np.zeros(len(features))
    shifted = features - features[:, :1]
    variance: Float64Array = shifted.var(axis=1, ddof=1)
    return variance


def mutual_information(X: Array, classes: NDArray[np.intp]) -> Float64Array:
    """Return 2 I / (H(x) + H(y)) of every feature, from histograms, as in the code of infFS_S.

    Bins have equal widths. Empty bins have a probability of 1e-5, and empty cells of the joint histogram a count
    of 1e-5.
    """
    information: Float64Array
    (information,) = per_feature(partial(_mutual_information, classes=classes), X, "mutual information")
    return information


def _mutual_information(features: Float64Array, classes: NDArray[np.intp]) -> tuple[Float64Array]:
    m, n = features.shape
    n_bins = 20 if n > 200 else max(n // 10, 10)
    to_common_size(features)
    cells = _bins(features, n_bins)
    cells += n_bins * classes
    n_cells = n_bins * (classes.max() + 1)
    cells += n_cells * np.arange(m)[:, None]
    counts = np.bincount(cells.ravel(), minlength=m * n_cells).reshape(m, -1, n_bins).astype(np.float64)
    of_x, of_class = counts.sum(axis=1) / n, np.bincount(classes) / n
    of_x[of_x == 0] = _EMPTY
    counts[counts == 0] = _EMPTY
    joint = counts / n
    information = (joint * np.log(joint / of_x[:, None, :] / of_class[:, None])).sum(axis=(1, 2))
    entropies = -(of_x * np.log(of_x)).sum(axis=1) - (of_class * np.log(of_class)).sum()
    return (2.0 * information / entropies,)


def _bins(features: Float64Array, n_bins: int) -> NDArray[np.intp]:
    """Return the bin index of each value: bins of equal width from the minimum to the maximum, the last closed."""
    least = features.min(axis=1, keepdims=True)
    widths = (features.max(axis=1, keepdims=True) - least) / n_bins
    bins: NDArray[np.intp] = ((features - least) / np.where(widths > 0, widths, 1.0)).astype(np.intp)
    np.minimum(bins, n_bins - 1, out=bins)
    # Rounding errors may have moved a value across a bin edge.
    bins -= features < least + bins * widths
    bins += (features >= least + (bins + 1) * widths) & (bins < n_bins - 1) & (widths > 0)
    return bins


def to_common_size(features: Float64Array) -> NDArray[np.intc]:
    """Divide each feature by a power of two, so that its squares neither overflow nor underflow; return the exponents.

    Then subtract its first value, so that constants are exactly zero and no digits are lost to a large mean.
    """
    exponents: NDArray[np.intc] = np.frexp(np.abs(features).max(axis=1))[1]
    np.ldexp(features, -exponents[:, None], out=features)
    features -= features[:, :1].copy()
    return exponents
