"""Solution: PLS factors with the means and scales of the data, under scikit-learn's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy import linalg

from .._core.schema import Number, Numbers, Object, solved_numbers, stored
from .._core.types import Float64Array
from ..pls import Factors, LossyGramAction
from ..states.moments import Moments
from .joint import JointGramAction, solve_jointly
from .scaling import Scaling, require_resolution, solve_scaled
from .vip import importance

# Maximum number of entries of solutions computed together: 1 GiB.
_NUMBERS_AT_A_TIME = 1 << 27


@stored()
@dataclass(frozen=True)
class Solution:
    """A solved model. Scores, weights, loadings and rotations refer to scaled data."""

    factors: Annotated[Factors, Object(Factors, m="m", q="q", s="s", a="a?")]
    x_mean: Annotated[Float64Array, Numbers("m")]
    y_mean: Annotated[Float64Array, Numbers("q")]
    x_scale: Annotated[Float64Array, Numbers("m", least=0)]
    y_scale: Annotated[Float64Array, Numbers("q", least=0)]
    x_squares: Annotated[Float64Array, solved_numbers("m", least=0)]
    """Sums of squares of the centred and scaled columns of X."""
    y_squares: Annotated[Float64Array, solved_numbers("q", least=0)]
    """Sums of squares of the centred and scaled columns of y."""
    retained_variance: Annotated[float, Number(nan=True)]
    subspace_error: Annotated[Float64Array, Numbers("s", nan=True)]
    weight: Annotated[float, Number(0)]
    """Total weight of the rows."""

    @classmethod
    def of(
        cls, moments: Moments, gram: LossyGramAction, n_components: int, *, scale: bool, quiet: bool = False
    ) -> Solution:
        """Return the solution for data given by its moments and Gram action; if ``quiet``, without warnings."""
        if gram.forgetting == 1.0:
            # With forgetting, the columns shrink as rows are forgotten.
            require_resolution(moments)
        scaling = Scaling.of(moments, scale=scale)
        factors = solve_scaled(moments, gram, scaling, n_components, quiet=quiet)
        # A scalar zero for exact actions.
        has_lost = not isinstance(gram.lost, float) and bool(np.any(gram.lost))
        lost = float(np.sum(gram.lost / scaling.x_scale**2)) if has_lost else 0.0
        # The state does not determine components that it has not preserved.
        subspace_error = np.zeros(n_components)
        subspace_error[: factors.n_components] = float(has_lost)
        known = gram.subspace_error[:n_components]
        subspace_error[: len(known)] = known
        return cls.of_factors(factors, moments, scaling, lost=lost, subspace_error=subspace_error)

    @classmethod
    def of_factors(
        cls,
        factors: Factors,
        moments: Moments,
        scaling: Scaling,
        *,
        lost: float = 0.0,
        subspace_error: Float64Array | None = None,
    ) -> Solution:
        """Return the solution with the given factors; ``lost`` is the sum of squares that a state has discarded."""
        x_total = float(scaling.x_squares.sum())
        return cls(
            factors=factors,
            x_mean=moments.x_mean,
            y_mean=moments.y_mean,
            x_scale=scaling.x_scale,
            y_scale=scaling.y_scale,
            x_squares=scaling.x_squares,
            y_squares=scaling.y_squares,
            retained_variance=1.0 - lost / (x_total or 1.0),
            subspace_error=np.zeros(len(factors.score_squares)) if subspace_error is None else subspace_error,
            weight=moments.weight,
        )

    def first(self, n_components: int) -> Solution:
        """Return the solution with the first components only, like a fit with this number."""
        return replace(
            self, factors=self.factors.first(n_components), subspace_error=self.subspace_error[:n_components].copy()
        )

    @property
    def x_total(self) -> float:
        """Sum of squares of the centred and scaled X."""
        return float(self.x_squares.sum())

    @property
    def y_total(self) -> float:
        """Sum of squares of the centred and scaled y."""
        return float(self.y_squares.sum())

    @property
    def n_components(self) -> int:
        """Number of components found in the data."""
        return self.factors.n_components

    @property
    def x_weights(self) -> Float64Array:
        """W."""
        return self.factors.x_weights

    @property
    def x_loadings(self) -> Float64Array:
        """P."""
        return self.factors.x_loadings

    @property
    def x_rotations(self) -> Float64Array:
        """R = W (P'W)^-1."""
        return self.factors.x_rotations

    @property
    def y_loadings(self) -> Float64Array:
        """Q."""
        return self.factors.y_loadings

    @property
    def y_lengths(self) -> Float64Array:
        """Root of the sum of squares of each column of y explained by each component, in any unit."""
        return self.factors.y_lengths

    @property
    def vip(self) -> Float64Array:
        """Variable importance in projection."""
        return importance(self.x_weights, self.y_lengths)

    @property
    def y_weights(self) -> Float64Array:
        """The loadings: in regression mode, y is regressed on the scores of X."""
        return self.factors.y_loadings

    @property
    def y_rotations(self) -> Float64Array:
        """Q (Q'Q)^+."""
        unit = np.abs(self.factors.y_loadings).max(initial=0.0) or 1.0
        Q = self.factors.y_loadings / unit
        return Q @ linalg.pinv(Q.T @ Q) / unit

    @property
    def intercept(self) -> Float64Array:
        """Prediction for the mean of X."""
        return self.y_mean

    @property
    def coef(self) -> Float64Array:
        """Coefficients of the centred, unscaled X."""
        return self.coefficients(None)

    def coefficients(self, n_components: int | None) -> Float64Array:
        """Return the coefficients of the model with the first components, of shape (q, m)."""
        scaled = self.factors.coefficients(n_components)
        return (scaled * self.y_scale).T / self.x_scale

    def projection(self, n_components: int | None) -> Float64Array:
        """Return the matrix that projects centred, unscaled X to the first scores."""
        return self.factors.x_rotations[:, :n_components] / self.x_scale[:, None]

    def difference(self, other: Solution) -> float:
        """Return the relative difference between the coefficients of scaled features of two solutions."""
        own, others = (solution.coef * self.x_scale / self.y_scale[:, None] for solution in (self, other))
        return float(np.linalg.norm(own - others) / (np.linalg.norm(own) or 1.0))

    @property
    def x_explained_variance_ratio(self) -> Float64Array:
        """Share of X's variance that each component explains."""
        return self.factors.x_explained / (self.x_total or 1.0)

    @property
    def y_explained_variance_ratio(self) -> Float64Array:
        """Share of Y's variance that each component explains."""
        return self.factors.y_explained / (self.y_total or 1.0)


def joint_solutions(
    training: Sequence[Moments], gram: JointGramAction, n_components: int, *, scale: bool
) -> Iterator[dict[int, Solution]]:
    """Yield the index and solution of each set of rows; as many are solved together as memory allows."""
    m, q = training[0].shape
    at_a_time = max(1, _NUMBERS_AT_A_TIME // (m * (5 * n_components + 3 * q + 6)))
    for first in range(0, len(training), at_a_time):
        sets = range(first, min(first + at_a_time, len(training)))
        moments = [training[k] for k in sets]
        scalings = [Scaling.of(one, scale=scale) for one in moments]
        found = solve_jointly(moments, gram, sets, scalings, n_components)
        yield dict(zip(sets, map(Solution.of_factors, found, moments, scalings), strict=True))
