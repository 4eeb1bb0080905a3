r"""The moments and a sketch of the rows: PLS from one pass, in the memory of a few hundred rows.

The sketch represents the sum of (x - mean)(x - mean)' as

.. math::
    X_c^T X_c \approx A = S^T S + (I - H^T H) \operatorname{diag}(\rho) (I - H^T H) ,

with a few hundred rows S, the same number of orthonormal directions H in which S is exact, and one number per column
for the variance that S lacks elsewhere. New rows are appended to S. When there are too many, S is replaced by fewer
combinations of its rows, :math:`U^T S` with orthonormal U. Incremental SVD takes the leading left singular vectors, and
discards directions of little variance, predictive or not. Here the first columns of U are the scores T of a PLS fit to
all rows so far: because :math:`T = S R`, the product :math:`S^T S R` is unchanged, so the current PLS solution survives
every compression. Leading singular vectors fill the other columns.

The numbers :math:`\rho` follow from the column sums of squares, which are exact: they add what S lacks.

The distance of the solution from the exact one is estimated. A compression is exact for the current rotations R, so
errors appear only when R changes. Its action on the R of the previous compression is known, and if rows arrive in
random order, R will change as it has changed so far.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import chain
from math import sqrt
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .._core.schema import Boolean, Choice, Count, Each, Number, Numbers, Object, is_in_proportion, stored
from .._core.threads import single_threaded_blas
from .._core.types import Float64Array, FloatArray
from ..pls import Factors, largest_sine, solve_pls
from ..rows import Block
from .gram import Gram
from .held_rows import (
    NOTHING_LOST,
    ROWS,
    ImplicitProducts,
    Residual,
    SparseRows,
    add_along,
    column_squares,
    combine,
    inner_products,
    leading_columns,
    leading_combinations,
    mixture,
    n_rows_of,
    products,
    rows_acting_on,
    unit_rows,
)
from .moments import ROUNDING, Moments, centred_rows, moments_of
from .sketch_errors import ActionErrors, Totals

# Directions of y used by a compression; enough for the solution that it preserves.
_DIRECTIONS_OF_Y_PER_COMPONENT = 2
_MORE_DIRECTIONS_OF_Y = 16
# Components with a smaller share of the total covariance, or variance, are not preserved by compressions.
_LEAST_PRESERVED = 1e-13
# If this share of the variance is discarded, the rounding errors of float32 are negligible.
_SINGLE_PRECISION_LOSS = 0.01
# The residual of a column is increased by the part that the held directions remove, by at most the inverse of this.
_LEAST_FREE_SHARE = 0.5
# The unit of the rows follows the columns' root sums of squares to within this factor.
_FAR_OFF = 2.0**20
_WIDEST_FOR_COMPRESSION = 1.1
# Smaller units would soon be too small to divide by.
_SMALLEST_UNIT = 1e-100
# A column whose sum of squares has fallen below a share of its former value counts as constant, because the errors of
# the sketch do not fade with it. The former values are forgotten slowly.
_LEAST_QUIET, _MOST_QUIET = 1e-2, 1e-20
_FADING_OF_THE_LOUDEST = 0.25
# Estimated errors of a state that starts from a solution are multiplied by this: on five real data sets in five orders,
# true errors were up to 2.4 times the estimates.
SEED_SAFETY = 2.5
# Maximum number of rows of a sketch, which are allocated when training continues.
MOST_ROWS = 1 << 25


@stored(
    rules={
        "all rows have one type": lambda its: all(piece.dtype == its.dtype for piece in its.pieces),
        "a sketch of size n has at most 3n + 1 rows": lambda its: n_rows_of(its.pieces) <= 3 * its.size + 1,
        # Otherwise, a small file could take long to solve.
        "there is a compressed row for every component": lambda its: (
            n_rows_of(its.pieces) >= min(its.n_components, len(its.unit)) if its.compressed else not its.residuals
        ),
        "components are in proportion to its arrays": lambda its: (
            its.n_components < its.size and is_in_proportion(its.n_components * len(its.unit), its)
        ),
    },
)
class Sketch(Moments):
    """Moments with a few rows that represent all rows.

    Parameters
    ----------
    n_columns, n_targets : int
        Number of features and of responses.
    size : int
        Number of rows after a compression. Data of no higher rank is represented exactly.
    n_components : int
        Number of components of the PLS solution that compressions preserve.
    scale : bool, default=False
        Whether the solution is for columns scaled to unit variance.
    forgetting : float in (0, 1], default=1.0
        Factor by which the weight of all earlier rows shrinks with every row.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Sketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 50))
    >>> state = Sketch(50, 1, size=10, n_components=2)
    >>> for start in range(0, 1000, 10):
    ...     state = state.update(X[start : start + 10], X[start : start + 10, :1])
    >>> state.n_held <= 31, bool(np.allclose(state.x_squares, X.var(axis=0) * 1000))
    (True, True)
    """

    size: Annotated[int, Count(1, MOST_ROWS)]
    n_components: Annotated[int, Count(1, size="c")]
    scale: Annotated[bool, Boolean()]
    pieces: Annotated[tuple[Any, ...], Each(ROWS)]
    """The rows S, divided by ``unit``. The arrays are never modified, so copies of the state share them. Sparse rows
    are compressed by :meth:`settle`."""
    unit: Annotated[Float64Array, Numbers("m", least=0)]
    """Approximately the columns' root sums of squares, or one number for all columns of unscaled data."""
    residuals: Annotated[tuple[Residual, ...], Each(Object(Residual, m="m"))]
    """The part not represented by S, in units; more than one after merges."""
    lost: Annotated[Float64Array, Numbers("m", least=0)]
    """Sums of squares of the columns that are not represented by S."""
    loudest: Annotated[Float64Array, Numbers("m", least=0)]
    """The largest sums of squares so far, forgotten more slowly."""
    quiet: Annotated[NDArray[np.bool_], Numbers("m", dtypes=("bool",))]
    """Columns that count as constant, because they are small compared with ``loudest``."""
    dtype: Annotated[Any, Choice(np.dtype(np.float32), np.dtype(np.float64))]
    compressed: Annotated[bool, Boolean()]
    """Whether there has been a compression; until then, S contains the rows themselves."""
    rotations: Annotated[Float64Array, Numbers(None, "m", any_order=True)]
    """The rotations of the last preserved solution, as rows, with scores of length one, in units."""
    errors: Annotated[ActionErrors, Object(ActionErrors, c="c")]
    """Expected errors of the action on each rotation, relative to the rows of that solution."""
    subspace_error: Annotated[Float64Array, Numbers(None, least=0)]
    """Estimated sine of the angle to the exact solution, for each number of components, until the next compression."""
    unresolved: Annotated[float, Number(0)]
    """Approximately the largest sum of squares, in units, of rows known only by their solution, in directions outside
    it."""

    def __init__(
        self,
        n_columns: int,
        n_targets: int,
        *,
        size: int,
        n_components: int,
        scale: bool = False,
        forgetting: float = 1.0,
    ) -> None:
        super().__init__(n_columns, n_targets, forgetting=forgetting)
        self.size = size
        self.n_components = n_components
        self.scale = scale
        self.pieces = ()
        self.unit = np.ones(n_columns)
        self.compressed = False
        self.residuals = ()
        self.lost = np.zeros(n_columns)
        self.loudest = np.zeros(n_columns)
        self.quiet = np.zeros(n_columns, dtype=bool)
        self.dtype = np.dtype(np.float64)
        self.rotations = np.zeros((0, n_columns))
        self.errors = ActionErrors.none(n_components)
        self.subspace_error = np.zeros(0)
        self.unresolved = 0.0

    @classmethod
    def seeded(
        cls, moments: Moments, factors: Factors, x_scale: Float64Array, *, size: int, n_components: int, scale: bool
    ) -> Self:
        r"""Return the state of rows for which only the moments and an exact PLS solution are known.

        :math:`X_c^T X_c R = P \operatorname{diag}(\tau)`, so the rows :math:`\sqrt{\tau_i} p_i` act on R like all rows,
        and the residual vanishes there.

        Parameters
        ----------
        moments : Moments
            Moments of the rows.
        factors : Factors
            Their solution, for columns divided by ``x_scale``.
        x_scale : ndarray of shape (n_columns,)
            Divisors.
        size, n_components, scale
            As for the class; the solution to preserve may differ.
        """
        state = cls._of_moments(moments, size, n_components, scale=scale)
        state._begin(*state._rows_of(factors, x_scale))
        return state

    @classmethod
    def of_rows(
        cls,
        moments: Moments,
        rows: Float64Array,
        rotations: Float64Array | None,
        *,
        size: int,
        n_components: int,
        scale: bool,
    ) -> Self:
        """Return the state of rows given their moments and other rows with the same action.

        Parameters
        ----------
        moments : Moments
            Moments of the rows.
        rows : ndarray of shape (n, m)
            Rows S with S'S R = Xc'Xc R.
        rotations : ndarray of shape (m, c) or None
            R. None if S'S equals Xc'Xc.
        size, n_components, scale
            As for the class.
        """
        state = cls._of_moments(moments, size, n_components, scale=scale)
        in_units: FloatArray = np.where(state.x_squares > 0, rows / state.unit, 0.0)
        if rotations is not None:
            state._begin(in_units, np.where(state.x_squares > 0, rotations.T * state.unit, 0.0).T)
            return state
        state.compressed = False
        state.pieces = (in_units,)
        if state.n_held > 3 * size + 1:
            state._compress()
        elif state.n_held >= size:
            state._remember(_rotations(state._solve(state._cross_in_units())))
        return state

    def _begin(self, rows: FloatArray, rotations: Float64Array) -> None:
        """Start from rows that act like all rows on some rotations, both in units; the rest is the residual."""
        total = self._total(self.x_squares)
        if total - column_squares(rows).sum() > NOTHING_LOST * total:
            self._set_residual(rows, rows[:0], rotations)
        self.pieces = (rows,)
        self._settle_dtype()
        self._remember(rotations)
        if self.residuals:
            # Explained variance decreases with every component; no better estimate is known for those not found.
            last = float(np.square(rows[-1:], dtype=np.float64).sum())
            self.unresolved = min(last, self._total(self.lost)) if len(rows) else self._total(self.lost)
            self._expect_errors(self.unresolved)

    def _rows_of(self, factors: Factors, x_scale: Float64Array) -> tuple[FloatArray, Float64Array]:
        """Return rows that act like all rows on the rotations of a solution, and these rotations, in units."""
        c, ratio = factors.n_components, (self.unit / x_scale)[:, None]
        varies = (self.x_squares > 0)[:, None]
        rotations = np.where(varies, _rotations(factors) * ratio, 0.0)
        lengths = np.sqrt(factors.score_squares[:c])
        rows: FloatArray = np.where(varies, factors.x_loadings[:, :c] * lengths / ratio, 0.0).T
        return rows, rotations

    def corrected(self, factors: Factors, x_scale: Float64Array) -> Self:
        r"""Return a state that acts exactly on the rotations of a PLS solution that further reads have made exact.

        As in :meth:`seeded`, the rows :math:`\sqrt{\tau_i} p_i` do so. The other rows are projected off this part:
        :math:`S (I - R P^T)`.

        Parameters
        ----------
        factors, x_scale
            As in :meth:`seeded`.
        """
        if not self.residuals:
            return self
        state = self.copy()
        rows, rotations = self._rows_of(factors, x_scale)
        rows = rows.astype(self.dtype)
        turned = rotations.astype(self.dtype)
        state.pieces = (rows, *(piece - (piece @ turned) @ rows for piece in self.pieces))
        state.residuals = tuple(residual.without(rotations) for residual in self.residuals)
        variances = self.errors.at(self._totals).sums[1]
        state._remember(rotations)
        # The error is now that of one compression, whatever was discarded: it is zero for these rotations.
        state.errors = replace(state.errors, sums=np.zeros_like(state.errors.sums)).plus(variances)
        state._compress()
        return state

    @classmethod
    def of_gram(cls, gram: Gram, *, size: int, n_components: int, scale: bool) -> Self:
        """Return a sketch of the rows of a Gram matrix."""
        state = cls._of_moments(gram, size, n_components, scale=scale)
        G = np.triu(gram.upper) / state.unit / state.unit[:, None]
        squares, vectors = linalg.eigh(G.T, overwrite_a=True, check_finite=False)
        held = squares > Gram.rounding * squares.max(initial=0.0)
        rows: FloatArray = (vectors[:, held] * np.sqrt(squares[held])).T[::-1]
        rows[:, state.x_squares == 0] = 0.0
        state.pieces = (rows,)
        state._remember(_rotations(state._solve(state._cross_in_units())))
        if len(rows) > 3 * size + 1:
            state._compress()
            state._expect_errors(float(squares[held][-size]))
        return state

    @classmethod
    def _of_moments(cls, moments: Moments, size: int, n_components: int, *, scale: bool) -> Self:
        """Return a state with the given moments and corresponding units."""
        state = cls(*moments.shape, size=size, n_components=n_components, scale=scale)
        for name in vars(Moments(0, 0)):
            setattr(state, name, copy(getattr(moments, name)))
        state.loudest = state.x_squares.copy()
        state._settle_unit(widest=_FAR_OFF)
        state.compressed = True
        return state

    @property
    def rounding(self) -> float:
        """Relative rounding error of a sum of products: after a compression, S is computed from the products SS'."""
        return Gram.rounding if self.compressed else ROUNDING

    @property
    def variance_resolution(self) -> float:
        """Relative variance below which a direction cannot be distinguished from rounding errors."""
        return Gram.variance_resolution if self.compressed else ROUNDING**2

    @property
    def n_held(self) -> int:
        """Number of rows held."""
        return n_rows_of(self.pieces)

    @property
    def nbytes(self) -> int:
        """Memory of the state."""
        return super().nbytes + sum(array.nbytes for array in chain(self.pieces, *self.residuals))

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Av and v'Av."""
        action, square = self._act_in_units(self.unit * v)
        return self.unit * action, float(square)

    def preserve(self, *, n_components: int, scale: bool) -> Self:
        """Set the solution that future compressions preserve."""
        self.n_components, self.scale, self.errors = n_components, scale, self.errors.resized(n_components)
        return self

    def preserves(self, *, n_components: int, scale: bool) -> bool:
        """Return whether compressions preserve this solution."""
        return self.n_components == n_components and self.scale == scale

    def merge(self, other: Moments) -> Self:
        """Add the rows of another state, which is left unchanged."""
        if not isinstance(other, Sketch):
            raise TypeError(f"Only another Sketch can be merged, not {type(other).__name__}.")
        self.settle()
        other = other.copy().settle()
        self._forget_means(other.x_origin, other.x_offset)
        other._forget_means(self.x_origin, self.x_offset)
        between = self._between_means(other)
        super().merge(other)
        self.lost += other.lost
        self.loudest = np.maximum(self.loudest, other.loudest)
        self.compressed = self.compressed or other.compressed
        self._settle_unit(widest=_FAR_OFF)
        ratio = other.unit / self.unit
        self.residuals += other._residuals_in_units(ratio)
        self.unresolved += other.unresolved * self._mean(np.minimum(ratio, _FAR_OFF) ** 2)
        change = self._mean(np.minimum(ratio, _FAR_OFF) ** 2)
        theirs = replace(other.errors, squares=other.errors.squares * change)
        if theirs.squares > self.errors.squares:
            # The solution of more rows.
            self.rotations = np.divide(other.rotations, ratio, out=np.zeros_like(other.rotations), where=ratio > 0)
        self.errors = self.errors.merged(theirs)
        self.pieces += tuple(piece * ratio for piece in other.pieces)
        self._settle_dtype()
        self._append(np.empty((0, len(between))), between)
        if self.residuals and self.errors.weight < self.weight:
            cross = self._cross_in_units()
            self._estimate_error(cross, self._solve(cross))
        return self

    @property
    def compresses_sparse_rows(self) -> bool:
        """Whether more sparse rows than ``size`` are absorbed by one compression, without converting them to dense.

        The first compression needs the solution of fewer rows to compare with, and that of a seed the rows themselves.
        """
        return self.compressed and not self._is_seed

    def _absorb(self, block: Block, summarise: Callable[[Block], tuple[Moments, Any]]) -> None:
        if not (sparse.issparse(block.X) and block.n_rows > 2 * self.size and self.compresses_sparse_rows):
            super()._absorb(block, summarise)
            return
        twin, middle = self.copy().settle(), block.n_rows // 2
        super(Sketch, twin)._absorb(block.part(slice(middle)), _sparse_summary)
        # The error is estimated from small changes of the solution, so the one in the middle is remembered.
        twin._remember(_rotations(twin._solve(twin._cross_in_units())))
        super(Sketch, twin)._absorb(block.part(slice(middle, block.n_rows)), _sparse_summary)
        vars(self).update(vars(twin))

    def settle(self) -> Self:
        """Compress sparse rows, which are appended as they are."""
        if any(isinstance(piece, SparseRows) for piece in self.pieces):
            self._compress()
        return self

    def _summarise(self, block: Block) -> tuple[Moments, Any]:
        return centred_rows(block)

    def _add(self, summary: Moments, rows: Any) -> None:
        # Not the mean of the new rows, some of which may differ from all before.
        self._forget_means(summary.x_origin)
        between = self._between_means(summary)
        super()._add(summary, rows)
        self._settle_unit(widest=_FAR_OFF)
        if self.forgetting < 1.0:
            rows = self._silence(rows, between)
        self._append(rows, between)

    def shrink(self, factor: float) -> None:
        """Multiply the weight of everything absorbed so far by a factor."""
        super().shrink(factor)
        self.lost *= factor
        self.loudest *= factor**_FADING_OF_THE_LOUDEST
        self.unit *= np.sqrt(factor)
        self.errors = replace(self.errors, weight=self.errors.weight * factor)

    def _silence(self, rows: Any, between: Float64Array) -> Any:
        """Clear columns that are almost forgotten, and return new rows without them."""
        self.loudest = np.maximum(self.loudest, self.x_squares)
        quiet = self.x_squares < np.clip(self._lost_share() ** 2, _MOST_QUIET, _LEAST_QUIET) * self.loudest
        if quiet.any():
            for values in (between, self.x_squares, self.cross, self.lost):
                values[quiet] = 0.0
            rows = _without(quiet, rows)
            if (quiet & ~self.quiet).any():
                self.pieces = tuple(_without(quiet, piece) for piece in self.pieces)
                self.residuals = tuple(
                    Residual(*(np.where(quiet, 0, array) for array in residual)) for residual in self.residuals
                )
                self.rotations = np.where(quiet, 0.0, self.rotations)
            self.unit[quiet] = 1.0
        self.quiet = quiet
        return rows

    def _forget_means(self, origin: Float64Array, offset: Float64Array | float = 0.0) -> None:
        """Set the means of quiet columns to those of other rows: differences from cleared rows are no variance."""
        if self.quiet.any():
            self.x_origin = np.where(self.quiet, origin, self.x_origin)
            self.x_offset = np.where(self.quiet, offset, self.x_offset)

    def _append(self, rows: Any, between: Float64Array) -> None:
        """Append rows to S, and the row for a difference of means, if any."""
        factor = 1 / self.unit
        if isinstance(rows, SparseRows):
            # Compressed later, by ``settle``.
            self.pieces += (rows.times(factor), (between * factor)[None].astype(self.dtype))
            return
        piece = np.empty((len(rows) + bool(between.any()), len(between)), self.dtype)
        np.multiply(rows, factor, out=piece[: len(rows)], casting="same_kind")
        piece[len(rows) :] = between * factor
        self.pieces += (piece,)
        if self.n_held > 3 * self.size + 1:
            self._compress()
        elif not self.errors.rows and self.n_held >= self.size:
            # The first compression needs a solution to compare with.
            self._remember(_rotations(self._solve(self._cross_in_units())))
        elif self._is_seed:
            cross = self._cross_in_units()
            solution = self._solve(cross)
            self._estimate_error(cross, solution, self._unresolved_errors(_rotations(solution)))

    @property
    def _is_seed(self) -> bool:
        """Whether the state started from a solution and has not been compressed since."""
        return self.unresolved > 0 and len(self.pieces[0]) <= self.n_components

    def _unresolved_errors(self, R: Float64Array) -> Float64Array:
        r"""Estimate the error of the action on rotations R from their distance to those of the seed.

        The residual E of the rows of the seed vanishes on its rotations. If D is the part of R orthogonal to these, the
        error is :math:`(E^T E - \operatorname{diag}(\rho)) D`. With the eigenvalues :math:`\lambda_j` of
        :math:`E^T E`, and D due to sampling errors, its expected length is about :math:`\|D\|` times the root of
        :math:`\sum_j (\lambda_j - \rho)^3 / \sum_j \lambda_j`. The eigenvalues are those of the residuals of the k rows
        since, scaled to the weight of the rows of the seed. For m columns of equal variance :math:`\rho`, they reach
        :math:`\rho (1 + (m / k)^{1/2})^2` (Marchenko and Pastur), so only the excess counts. If a single
        eigenvalue dominates, its standard error is :math:`\lambda (2 / k)^{1/2}`, and two of these are added.
        """
        weight = self.weight - self.errors.weight
        if not self._is_seed or weight <= 0:
            return np.zeros(R.shape[1])
        seed, *later = self.pieces
        known = self.rotations.T
        residuals = tuple(piece - (piece @ known.astype(piece.dtype)) @ seed for piece in later)
        squares = np.maximum(np.linalg.eigvalsh(inner_products(residuals)), 0.0) * self.errors.weight / weight
        k, n_columns = len(squares), max(1, int(np.count_nonzero(self.x_squares)) - known.shape[1])
        above = np.maximum(squares - squares.sum() / n_columns * (1 + sqrt(n_columns / k)) ** 2, 0.0)
        length = sqrt((above**3).sum() / (squares.sum() or 1.0)) * (1 + 2 * sqrt(2 / k))
        lost = self._total(self.lost)
        length = min(max(self.unresolved - lost / n_columns, length), lost)
        basis = linalg.qr(known, mode="economic", check_finite=False)[0]
        return SEED_SAFETY * length * np.linalg.norm(R - basis @ (basis.T @ R), axis=0)

    def _settle_unit(self, *, widest: float) -> None:
        """Adapt the unit to the data if it is far off, or unequally so across columns."""
        squares = self.x_squares if self.scale else np.full_like(self.x_squares, self.x_squares.max())
        varies = squares > 0
        target = np.where(varies, np.sqrt(squares), 1.0)
        ratio = np.where(varies, self.unit / target, 0.0)
        low, high = ratio[varies].min(initial=_FAR_OFF), ratio[varies].max(initial=1 / _FAR_OFF)
        far_off = high > widest * low or low < 1 / _FAR_OFF or high > _FAR_OFF
        if far_off or self.unit[~varies].min(initial=1.0) < _SMALLEST_UNIT or not self.pieces:
            self.pieces = tuple(_scaled(piece, ratio, self.dtype) for piece in self.pieces)
            inverse = np.divide(1.0, ratio, out=np.zeros_like(ratio), where=ratio > 0)
            self.residuals = self._residuals_in_units(ratio)
            self.rotations = self.rotations * inverse
            self.unit = target
            change = self._mean(np.minimum(ratio, _FAR_OFF) ** 2)
            self.errors = replace(self.errors, squares=self.errors.squares * change)
            self.unresolved *= change

    def _compress(self) -> None:
        """Replace the rows with ``size`` combinations of them, and the residuals with one."""
        self.compressed = True
        self._settle_unit(widest=_WIDEST_FOR_COMPRESSION)
        cross = self._cross_in_units()
        solution = self._solve(cross)
        before = self._act_in_row_precision(self.rotations.T)[0]
        unresolved = self._unresolved_errors(_rotations(solution))
        with single_threaded_blas():  # Too little work for threads.
            brought, kept, variances = self._combinations(_rotations(solution))
        squares = self._in_units(self.x_squares)
        # Rounding errors in a constant column would be scaled up if it varies a little later.
        kept[:, squares == 0] = 0
        dropped = column_squares(*self.pieces, *brought).sum() - column_squares(kept).sum()
        if self.residuals or dropped > NOTHING_LOST * squares.sum():
            leading = kept[: len(variances)]
            add_along(leading, variances, self.residuals, brought)
            self._set_residual(kept, leading, _rotations(solution))
        self.pieces = (kept,)
        self._settle_dtype()
        changes = before - self._act_in_row_precision(self.rotations.T)[0]
        self.errors = self.errors.after_compression(self._totals, changes, unresolved)
        self._remember(_rotations(solution))
        self._estimate_error(cross, solution)

    def _set_residual(self, rows: FloatArray, leading: FloatArray, R: Float64Array) -> None:
        """Set the residual to what the rows lack of the column sums of squares, outside of R and the leading rows."""
        lost = np.maximum(self._in_units(self.x_squares) - column_squares(rows), 0.0)
        self.lost = lost * self.unit * self.unit
        weights = linalg.qr(R, mode="economic", check_finite=False)[0].T
        directions = np.concatenate([unit_rows(leading), weights.astype(rows.dtype)])
        free = 1.0 - column_squares(directions)
        self.residuals = (Residual(lost / np.maximum(free, _LEAST_FREE_SHARE), directions),)

    def _combinations(self, R: Float64Array) -> tuple[tuple[FloatArray, ...], FloatArray, FloatArray]:
        """Return rows for the residuals, the combinations of all rows to keep, and the squares of the first ones.

        The action of the residuals on R is converted to a few more rows: with these, :math:`T = S R` is orthonormal,
        and :math:`S^T T` equals A R.
        """
        brought = tuple(rows_acting_on(R, residual).astype(self.dtype) for residual in self.residuals)
        pieces = self.pieces + brought
        gram: FloatArray | ImplicitProducts = (
            ImplicitProducts(pieces, self.dtype)
            if any(isinstance(piece, SparseRows) for piece in pieces)
            else inner_products(pieces).astype(self.dtype)
        )
        T = np.concatenate([piece @ R.astype(self.dtype) for piece in pieces])
        T = linalg.qr(T, mode="economic", check_finite=False)[0]
        n_leading = min(self.size, len(R)) - T.shape[1]
        U, variances = leading_combinations(gram, T, n_leading)
        return brought, combine(np.hstack([U, T]), pieces, self.dtype), variances

    def _solve(self, cross: Float64Array, noise: FloatArray | None = None) -> Factors:
        """Return the solution to preserve, in units, with noise columns added to the action if given."""
        if cross.shape[1] > cross.shape[0]:
            # A factor with as many columns as features has the same left vectors.
            cross = linalg.qr(cross.T, mode="r")[0].T[:, : len(cross)]
        n_directions = _DIRECTIONS_OF_Y_PER_COMPONENT * self.n_components + _MORE_DIRECTIONS_OF_Y
        cross = leading_columns(cross, n_directions)
        return solve_pls(
            cross,
            _ActionInUnits(self, noise),
            min(self.n_components, min(self.size, len(cross)) - 1),
            x_squares=self._total(self.x_squares),
            y_squares=float(cross.shape[1]),
            quiet=True,
        )

    def _act_in_units(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A V and the diagonal of V'AV, for a vector or the columns of a matrix, in the precision of V."""
        action, squares = np.zeros_like(V), np.zeros(V.shape[1:], V.dtype)
        for piece in self.pieces:
            by_rows, lengths = products(piece, V)
            action += by_rows
            squares += lengths
        for residual in self.residuals:
            by_column = residual.act(V)
            action += by_column
            squares += (V * by_column).sum(axis=0)
        return action, squares

    def _act_in_row_precision(self, V: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the same in the precision of the rows, which suffices for the solution to preserve."""
        lengths = np.linalg.norm(V, axis=0)
        lengths = np.where(lengths > 0, lengths, 1.0)
        action, squares = self._act_in_units((V / lengths).astype(self.dtype))
        return action.astype(np.float64) * lengths, squares.astype(np.float64) * lengths**2

    def _residuals_in_units(self, ratio: Float64Array) -> tuple[Residual, ...]:
        """Return the residual in units smaller by a ratio; it vanishes in the same directions."""
        # Up to a constant factor: only the span matters.
        inverse = np.divide(ratio[ratio > 0].min(initial=np.inf), ratio, out=np.zeros_like(ratio), where=ratio > 0)
        if not np.ptp(ratio):
            return tuple(residual._replace(diagonal=residual.diagonal * ratio**2) for residual in self.residuals)
        return tuple(
            Residual(
                residual.diagonal * ratio**2,
                linalg.qr(_scaled(residual.directions, inverse, self.dtype).T, mode="economic")[0].T,
            )
            for residual in self.residuals
        )

    @property
    def _totals(self) -> Totals:
        """Weight, effective number and sum of squares, in units, of all rows."""
        return Totals(self.weight, self.effective_rows, self._total(self.x_squares))

    def _remember(self, R: Float64Array) -> None:
        """Store the rotations of the present solution, to which those of later ones are compared."""
        self.rotations = np.where(self.x_squares > 0, R.T, 0.0)
        self.errors = self.errors.at(self._totals)

    def _expect_errors(self, variance: float) -> None:
        r"""Estimate the errors due to a loss that was not measured, for the current solution and later ones.

        Sampling errors of the covariance with the residual y, of squares :math:`y_i^2`, have the covariance of the
        rows. Divided by :math:`q_i \tau_i^{3/2}`, they are the change of the i-th rotation, with scores of length one.
        The lost part has the trace :math:`\theta`, the mean variance :math:`\rho` and the largest :math:`\lambda`, and
        the diagonal that replaces it is off by :math:`\lambda - \rho` and the sampling error of n rows. The error of
        its action on the change of the rotations is about

        .. math::
            e_i^2 = \theta \left( (\lambda - \rho)^2 + \rho^2 \frac{4 m}{n} \right) \frac{y_i^2}{q_i^2 \tau_i^3} .
        """
        cross = self._cross_in_units()
        solution = self._solve(cross)
        c, tau = solution.n_components, solution.score_squares
        loads = solution.y_loadings[:, :c]
        squares = np.square(loads).sum(axis=0)
        left = 1.0 - np.cumsum(loads**2 * tau[:c], axis=1) + loads**2 * tau[:c]
        # For the combination of responses predicted by the component.
        y_left = np.maximum((loads**2 * left).sum(axis=0) / squares, 0.0)
        _, rows, total = self._totals
        lost = self._total(self.lost)
        n_columns = max(1, int(np.count_nonzero(self.x_squares)) - c)
        mean = lost / n_columns
        off = max(variance - mean, 0.0) ** 2 + 4 * mean**2 * n_columns / rows
        expected = lost * off / total * y_left / (squares * tau[:c] ** 3)
        if self._is_seed:
            expected *= SEED_SAFETY**2
        self.errors = self.errors.plus(expected)
        self._estimate_error(cross, solution)

    def _estimate_error(self, cross: Float64Array, solution: Factors, least: Float64Array | None = None) -> None:
        """Solve again with the action perturbed by the expected error, or ``least``, and measure the angle."""
        c = solution.n_components
        self.subspace_error = np.zeros(c)
        # When the next compression is due.
        errors = self.errors.expected(self._totals, 2 * self.size, self.forgetting)
        if least is not None:
            errors[:c] = np.maximum(errors[:c], least)
        if self.residuals and errors.any():
            residual = np.sum([residual.diagonal for residual in self.residuals], axis=0)
            noise = mixture(len(cross), self.n_components) * np.sqrt(residual)[:, None]
            noise *= errors / np.linalg.norm(noise, axis=0)
            turned = self._solve(cross, noise)
            for k in range(1, min(c, turned.n_components)):  # The first weights depend only on the cross-covariance.
                self.subspace_error[k] = largest_sine(turned.x_weights[:, : k + 1], solution.x_weights[:, : k + 1])
            self.subspace_error[turned.n_components :] = 1.0

    def _settle_dtype(self) -> None:
        """Store rows in float32 if rounding errors are negligible relative to the discarded part."""
        self.dtype = np.dtype(np.float32 if self._lost_share() > _SINGLE_PRECISION_LOSS else np.float64)
        self.pieces = tuple(piece.astype(self.dtype, copy=False) for piece in self.pieces)
        self.residuals = tuple(
            residual._replace(directions=residual.directions.astype(self.dtype, copy=False))
            for residual in self.residuals
        )

    def _cross_in_units(self) -> Float64Array:
        """Return the cross-covariance for compressions, in units."""
        squares = self.y_squares if self.scale else np.full_like(self.y_squares, self.y_squares.max(initial=0.0))
        y_unit = np.sqrt(np.where(squares > 0, squares, 1.0))
        return self.cross / self.unit[:, None] / y_unit

    def _in_units(self, squares: Float64Array) -> Float64Array:
        # Divided twice, because the square of the unit may underflow.
        return squares / self.unit / self.unit

    def _total(self, squares: Float64Array) -> float:
        """Return the sum of squares of all columns in units."""
        return float(np.sum(self._in_units(squares)))

    def _mean(self, by_column: Float64Array) -> float:
        """Return a mean over columns, weighted by their sums of squares in units."""
        squares = self._in_units(self.x_squares)
        return float(squares @ by_column) / (float(squares.sum()) or 1.0)

    def _lost_share(self) -> float:
        """Return the discarded share of the sum of squares, of scaled columns if the solution is scaled."""
        varies = self.x_squares > 0
        if not varies.any():
            return 0.0
        if self.scale:
            # Not in units, which are updated only by compressions.
            return float(np.mean(self.lost[varies] / self.x_squares[varies]))
        return self._total(self.lost) / self._total(self.x_squares)


def _sparse_summary(block: Block) -> tuple[Moments, SparseRows]:
    """Return the moments of a block, and its rows, which stay sparse."""
    summary = moments_of(block)
    return summary, SparseRows.of(block, summary)


def _without(columns: NDArray[np.bool_], rows: Any) -> Any:
    """Return rows with some columns set to zero."""
    return rows.times(~columns) if isinstance(rows, SparseRows) else np.where(columns, 0, rows)


def _scaled(rows: Any, ratio: Float64Array, dtype: Any) -> Any:
    """Return rows times a ratio per column, multiplied in float64 without a float64 copy."""
    if isinstance(rows, SparseRows):
        return rows.times(ratio)
    return np.multiply(rows, ratio, out=np.empty(rows.shape, dtype), casting="same_kind")


def _rotations(solution: Factors) -> Float64Array:
    """Return the rotations of the components found, with scores of length one."""
    c = solution.n_components
    return solution.x_rotations[:, :c] / np.sqrt(solution.score_squares[:c])


class _ActionInUnits:
    """The action of a sketch for the solver, optionally with noise relative to the length of the scores."""

    def __init__(self, state: Sketch, noise: FloatArray | None) -> None:
        self.state = state
        self.noise = noise
        self.n_applied = 0
        self.rounding = self.variance_resolution = max(_LEAST_PRESERVED, float(np.finfo(state.dtype).eps))

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        action, square = self.state._act_in_row_precision(v)
        if self.noise is not None:
            action += self.noise[:, self.n_applied] * np.sqrt(square)
            self.n_applied += 1
        return action, float(square)
