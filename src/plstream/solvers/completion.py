r"""Missing values, completed by the factor model of a PLS solution.

With rows z, centred and scaled as in the model, loadings P, and diagonal matrices :math:`\Lambda` and D of the
variances of scores and residuals,

.. math::
    z = P t + e, \quad t \sim (0, \Lambda), \quad e \sim (0, D) .

Given the observed entries o of a row, the conditional means of its scores and of its missing entries are

.. math::
    \hat t = (\Lambda^{-1} + P_o^T D_o^{-1} P_o)^{-1} P_o^T D_o^{-1} z_o, \quad \hat z_{miss} = P_{miss} \hat t .

In training, observed responses are treated as further entries, with the loadings of y. The time per row is linear in
the number of features, and no features-by-features matrix is formed. Scores and predictions are computed from the
completed row, not from :math:`\hat t`: the two differ even for complete rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._core.schema import Numbers, stored
from .._core.tiles import as_dense
from .._core.types import Array, Float64Array, FloatArray, Rows
from ..rows import Block
from .solution import Solution

# Minimum variance of residuals as a share of the mean variance of the columns, for noise-free data.
_LEAST_NOISE = 1e-8
# Columns processed at a time.
_COLUMNS_AT_A_TIME = 1024
# Rows completed at a time.
_ROWS_AT_A_TIME = 1024


@stored()
@dataclass
class Gaps:
    """Missing cells of training rows, counted for each column of X, and weighted for each column of X and y."""

    n_missing: Annotated[Float64Array, Numbers("m", least=0)]
    """Number of missing cells in each column of X."""
    weight: Annotated[Float64Array, Numbers("n", least=0)]
    """Sums of the weights of rows with a value, of shape (m + q,)."""
    missing_weight: Annotated[Float64Array, Numbers("n", least=0)]
    """Sums of the weights of rows without one."""

    @classmethod
    def none(cls, shape: tuple[int, int], weight: float) -> Self:
        """Return the gaps of complete rows with the given numbers of columns of X and y."""
        n_columns, n = shape[0], sum(shape)
        return cls(np.zeros(n_columns), np.full(n, float(weight)), np.zeros(n))

    @classmethod
    def of(cls, block: Block) -> Self:
        """Return the gaps of a block."""
        weight = block.weights
        gaps = cls.none((block.X.shape[1], block.n_targets), float(weight.sum()))
        m = len(gaps.n_missing)
        missing = np.isnan(as_dense(block.X))
        gaps.n_missing = missing.sum(axis=0).astype(np.float64)
        if not block.n_classes:
            missing = np.concatenate([missing, np.isnan(block.Y)], axis=1)
        n = missing.shape[1]
        gaps.missing_weight[:n] = weight @ missing
        # A rounding error in a difference is not an observation.
        gaps.weight[:n] = np.where(missing.all(axis=0), 0.0, gaps.weight[:n] - gaps.missing_weight[:n])
        gaps.missing_weight[:m][gaps.n_missing == 0] = 0.0
        return gaps

    @property
    def any(self) -> bool:
        """Whether any cell is missing."""
        return bool(self.n_missing.any() or self.missing_weight.any())

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Columns of X, then y, without any observed value."""
        return np.asarray(self.weight <= 0)

    @property
    def share(self) -> Float64Array:
        """Observed share of the weight of each column; one if nothing is observed."""
        total = self.weight + self.missing_weight
        share: Float64Array = np.where(self.weight > 0, self.weight / np.where(total > 0, total, 1.0), 1.0)
        return share

    def merged(self, other: Gaps, factor: float = 1.0) -> Self:
        """Return the gaps of both; the weights of these rows are multiplied by a factor."""
        return type(self)(
            self.n_missing + other.n_missing,
            factor * self.weight + other.weight,
            factor * self.missing_weight + other.missing_weight,
        )

    def merge(self, other: Gaps) -> Self:
        """Add the gaps of other rows."""
        vars(self).update(vars(self.merged(other)))
        return self

    def shrink(self, factor: float) -> None:
        """Multiply the weights by a factor."""
        self.weight = factor * self.weight
        self.missing_weight = factor * self.missing_weight

    def with_targets(self, n_targets: int) -> Self:
        """Return the gaps with another number of classes."""
        m = len(self.n_missing)
        weight = np.full(n_targets, (self.weight + self.missing_weight).max(initial=0.0))
        return type(self)(
            self.n_missing,
            np.concatenate([self.weight[:m], weight]),
            np.concatenate([self.missing_weight[:m], np.zeros(n_targets)]),
        )


def observed_means(block: Block) -> Float64Array:
    """Return weighted means of the observed cells of X, then y; zero if there are none."""
    weight = block.weights
    means = []
    for values in (as_dense(block.X), block.responses):
        missing = np.isnan(values)
        # Relative to one of the values, so that means far from zero lose no digits.
        first = values[np.argmax(~missing, axis=0), np.arange(values.shape[1])].astype(np.float64)
        first[np.isnan(first)] = 0.0
        total = weight @ ~missing
        means.append(first + weight @ np.where(missing, 0.0, values - first) / np.where(total > 0, total, 1.0))
    return np.concatenate(means)


def has_gaps(rows: Rows) -> bool:
    """Return whether dense or sparse rows contain NaN."""
    values = rows.data if sparse.issparse(rows) else rows
    return bool(values.dtype.kind == "f" and np.isnan(values).any())


@stored(rules={"columns are those of X and y": lambda its: its.sizes["n"] == its.sizes["m"] + its.sizes["q"]})
class FactorModel(NamedTuple):
    """Loadings, variances and coefficients to complete rows. Arrays contain the columns of X, then those of y."""

    mean: Annotated[Float64Array, Numbers("n")]
    """Means, (m + q,)."""
    scale: Annotated[Float64Array, Numbers("n", least=0)]
    """Divisors, (m + q,)."""
    loadings: Annotated[Float64Array, Numbers("n", "k?", finite=False, any_order=True)]
    """Loadings times standard deviations of the scores, (m + q, c)."""
    precision: Annotated[Float64Array, Numbers("n", least=0, finite=False)]
    """One over the variances of the residuals, zero for constant columns, (m + q,)."""
    coefficients: Annotated[Float64Array, Numbers("q", "m", finite=False, any_order=True)]
    """Coefficients of the centred X, (q, m)."""

    @classmethod
    def of_means(cls, mean: Float64Array, n_targets: int) -> FactorModel:
        """Return the model without components, which completes rows by means."""
        n = len(mean)
        return cls(mean, np.ones(n), np.zeros((n, 0)), np.zeros(n), np.zeros((n_targets, n - n_targets)))

    @classmethod
    def of(cls, solution: Solution, gaps: Gaps | None = None) -> FactorModel:
        r"""Return the model of a solution.

        ``gaps`` are those of the training rows. Completed cells have zero residuals, so the variances of residuals are
        those of the observed cells,

        .. math::
            D_j = (s_j - \sum_i p_{ji}^2 \tau_i) / (n f_j)

        with sums of squares s of the columns and :math:`\tau` of the scores, of n rows with an observed share f.
        """
        factors, k = solution.factors, solution.factors.n_components
        weight = solution.weight or 1.0
        deviations = np.sqrt(factors.score_squares[:k]) / np.sqrt(weight)
        loadings = np.concatenate([factors.x_loadings[:, :k], factors.y_loadings[:, :k]]) * deviations
        variances = np.concatenate([solution.x_squares, solution.y_squares]) / weight
        varies = variances > 0
        share = 1.0 if gaps is None else gaps.share
        noise = (variances - np.einsum("ij,ij->i", loadings, loadings)) / share
        noise = np.maximum(noise, _LEAST_NOISE * (variances.sum() / max(1, np.count_nonzero(varies)) or 1.0))
        return cls(
            np.concatenate([solution.x_mean, solution.y_mean]),
            np.concatenate([solution.x_scale, solution.y_scale]),
            loadings,
            np.where(varies, 1.0 / noise, 0.0),
            solution.coefficients(None),
        )

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.coefficients.shape[1])

    def completed(self, X: Rows) -> Rows:
        """Return rows without gaps: X itself if it has none, otherwise a dense copy of the same dtype."""
        return self.completed_block(Block(X, np.empty((X.shape[0], 0)), None), from_y=False).X

    def completed_block(self, block: Block, *, from_y: bool = True) -> Block:
        """Return a block without gaps in X and y: the block itself if it has none.

        If not ``from_y``, X is completed as if no response were known.
        """
        values = as_dense(block.X)
        x_gaps, y_gaps = np.isnan(values).any(axis=1), np.isnan(block.Y).any(axis=1)
        if not x_gaps.any() and not y_gaps.any():
            return block
        X, Y = block.X, block.Y
        if x_gaps.any():
            X = np.array(values)
            incomplete = np.flatnonzero(x_gaps)
            for start in range(0, len(incomplete), _ROWS_AT_A_TIME):
                rows = incomplete[start : start + _ROWS_AT_A_TIME]
                X[rows] = self._completed_features(
                    values[rows], block._replace(Y=Y[rows]).responses if from_y else None
                )
        if y_gaps.any():
            Y = Y.copy()
            Y[y_gaps] = np.where(np.isnan(Y[y_gaps]), self._predicted(X[y_gaps]), Y[y_gaps])
        return block._replace(X=X, Y=Y)

    def _predicted(self, X: Rows) -> Float64Array:
        m = self.n_features
        predicted: Float64Array = self.mean[m:] + (as_dense(X) - self.mean[:m]) @ self.coefficients.T
        return predicted

    def _completed_features(self, X: Array, Y: Float64Array | None) -> Array:
        """Return incomplete rows with the conditional means of the missing cells."""
        m = self.n_features
        values = X if Y is None else np.concatenate([X, Y], axis=1)
        n = values.shape[1]
        z = (values - self.mean[:n]) / self.scale[:n]
        gaps = np.isnan(z)
        z[gaps] = 0.0
        scores = self._scores(z, gaps)
        found = (scores @ self.loadings[:m].T) * self.scale[:m] + self.mean[:m]
        return np.where(gaps[:, :m], found, X)

    def _scores(self, z: Float64Array, gaps: NDArray[np.bool_]) -> FloatArray:
        """Return the conditional means of the scores, in standard deviations, so that the prior covariance is one."""
        n, c = z.shape[1], self.loadings.shape[1]
        loadings, precision = self.loadings[:n], self.precision[:n]
        right = (z * precision) @ loadings
        # Rows with the same gaps, for example while a sensor is off, share a matrix.
        bits, which = np.unique(np.packbits(gaps, axis=1), axis=0, return_inverse=True)
        observed = ~np.unpackbits(bits, axis=1, count=n).astype(bool)
        pairs = np.triu_indices(c)
        halves = np.zeros((len(bits), len(pairs[0])))
        for start in range(0, n, _COLUMNS_AT_A_TIME):
            part = slice(start, start + _COLUMNS_AT_A_TIME)
            products = loadings[part][:, pairs[0]] * loadings[part][:, pairs[1]] * precision[part, None]
            halves += observed[:, part].astype(np.float64) @ products
        matrices = np.zeros((len(bits), c, c))
        matrices[:, pairs[0], pairs[1]] = matrices[:, pairs[1], pairs[0]] = halves
        matrices += np.eye(c)
        scores: FloatArray = np.linalg.solve(matrices[which.ravel()], right[:, :, None])[:, :, 0]
        return scores
