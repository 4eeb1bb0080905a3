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
from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .._core.schema import Boolean, Count, Numbers, Object, is_in_proportion, stored
from .._core.types import Float64Array, FloatArray
from ..pls import Factors, largest_sine, solve_pls
from ..rows import Block
from .gram import Gram
from .held_rows import (
    NOTHING_LOST,
    HeldRows,
    Residual,
    SparseRows,
    clear_columns,
    column_squares,
    leading_columns,
    mixture,
    n_rows_of,
)
from .moments import ROUNDING, Moments, centred_rows, moments_of, plain_moments
from .sketch_errors import SEED_SAFETY, SketchErrors, Totals, errors_of_loss, errors_of_seed

# Directions of y used by a compression; enough for the solution that it preserves.
_DIRECTIONS_OF_Y_PER_COMPONENT = 2
_MORE_DIRECTIONS_OF_Y = 16
# Components with a smaller share of the total covariance, or variance, are not preserved by compressions.
_LEAST_PRESERVED = 1e-13
# If this share of the variance is discarded, the rounding errors of float32 are negligible.
_SINGLE_PRECISION_LOSS = 0.01
# The unit of the rows follows the columns' root sums of squares to within this factor.
_FAR_OFF = 2.0**20
_WIDEST_FOR_COMPRESSION = 1.1
# Smaller units would soon be too small to divide by.
_SMALLEST_UNIT = 1e-100
# A column whose sum of squares has fallen below a share of its former value counts as constant, because the errors of
# the sketch do not fade with it. The former values are forgotten slowly.
_LEAST_QUIET, _MOST_QUIET = 1e-2, 1e-20
_FADING_OF_THE_LOUDEST = 0.25
# Maximum number of rows of a sketch, which are allocated when training continues.
MOST_ROWS = 1 << 25


@stored(
    rules={
        "a sketch of size n has at most 3n + 1 rows": lambda its: n_rows_of(its.held.pieces) <= 3 * its.size + 1,
        "there is a compressed row for every preserved component": lambda its: (
            len(its.held.pieces) > 0 and n_rows_of(its.held.pieces) >= len(its.errors.rotations)
            if its.compressed
            else not its.held.residuals
        ),
        # Otherwise, a small file could take long to solve.
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
    held: Annotated[HeldRows, Object(HeldRows, m="m")]
    """The rows S and the residual, divided by ``unit``. Sparse rows are compressed by :meth:`settle`."""
    unit: Annotated[Float64Array, Numbers("m", least=0)]
    """Approximately the columns' root sums of squares, or one number for all columns of unscaled data."""
    lost: Annotated[Float64Array, Numbers("m", least=0)]
    """Sums of squares of the columns that are not represented by S."""
    loudest: Annotated[Float64Array, Numbers("m", least=0)]
    """The largest sums of squares so far, forgotten more slowly."""
    quiet: Annotated[NDArray[np.bool_], Numbers("m", dtypes=("bool",))]
    """Columns that count as constant, because they are small compared with ``loudest``."""
    compressed: Annotated[bool, Boolean()]
    """Whether there has been a compression; until then, S contains the rows themselves."""
    errors: Annotated[SketchErrors, Object(SketchErrors, m="m", c="c")]

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
        self.held = HeldRows()
        self.unit = np.ones(n_columns)
        self.compressed = False
        self.lost = np.zeros(n_columns)
        self.loudest = np.zeros(n_columns)
        self.quiet = np.zeros(n_columns, dtype=bool)
        self.errors = SketchErrors.none(n_columns, n_components)

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
        state.held = HeldRows((in_units,))
        if state.n_held > 3 * size + 1:
            state._compress()
        elif state.n_held >= size:
            state._remember(_rotations(state._solve(state._cross_in_units())))
        return state

    def _begin(self, rows: FloatArray, rotations: Float64Array) -> None:
        """Start from rows that act like all rows on some rotations, both in units; the rest is the residual."""
        squares, self.held = self._in_units(self.x_squares), HeldRows((rows,))
        if squares.sum() - column_squares(rows).sum() > NOTHING_LOST * squares.sum():
            residual, lost = Residual.of(rows, rows[:0], rotations, squares)
            self.held, self.lost = HeldRows((rows,), (residual,)), lost * self.unit * self.unit
        self._settle_dtype()
        self._remember(rotations)
        if self.held.residuals:
            # Explained variance decreases with every component; no better estimate is known for those not found.
            last = float(np.square(rows[-1:], dtype=np.float64).sum())
            unresolved = min(last, self._total(self.lost)) if len(rows) else self._total(self.lost)
            self.errors = replace(self.errors, unresolved=unresolved)
            self._expect_errors(unresolved)

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
        if not self.held.residuals:
            return self
        state = self.copy()
        rows, rotations = self._rows_of(factors, x_scale)
        state.held = self.held.corrected(rows, rotations)
        state._remember(rotations)
        # The error is now that of one compression, whatever was discarded: it is zero for these rotations.
        state.errors = state.errors.of_one_compression()
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
        state.held = HeldRows((rows,))
        state._remember(_rotations(state._solve(state._cross_in_units())))
        if len(rows) > 3 * size + 1:
            state._compress()
            state._expect_errors(float(squares[held][-size]))
        return state

    @classmethod
    def _of_moments(cls, moments: Moments, size: int, n_components: int, *, scale: bool) -> Self:
        """Return a state with the given moments and corresponding units."""
        state = cls(*moments.shape, size=size, n_components=n_components, scale=scale)
        vars(state).update(vars(plain_moments(moments)))
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
        return self.held.n_rows

    @property
    def nbytes(self) -> int:
        """Memory of the state."""
        return super().nbytes + self.held.nbytes + self.errors.rotations.nbytes

    @property
    def subspace_error(self) -> Float64Array:
        """Estimated sine of the angle to the exact solution, for each number of components."""
        return self.errors.of_subspace

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Av and v'Av."""
        action, square = self.held.act(self.unit * v)
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
        mine, theirs = self.held, other.held.scaled(ratio, np.dtype(np.float64))
        errors = other.errors.scaled(ratio, self._change_of_squares(ratio))
        # The rows of the solution that is kept come first.
        self.held = theirs.merged(mine) if errors.has_more_than(self.errors) else mine.merged(theirs)
        self.errors = self.errors.merged(errors)
        self._settle_dtype()
        self._append(np.empty((0, len(between))), between)
        if self.held.residuals and self.errors.action.weight < self.weight:
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
        if self.held.has_sparse_rows:
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
        self.errors = self.errors.shrunk(factor)

    def _silence(self, rows: Any, between: Float64Array) -> Any:
        """Clear columns that are almost forgotten, and return new rows without them."""
        self.loudest = np.maximum(self.loudest, self.x_squares)
        quiet = self.x_squares < np.clip(self._lost_share() ** 2, _MOST_QUIET, _LEAST_QUIET) * self.loudest
        if quiet.any():
            for values in (between, self.x_squares, self.cross, self.lost):
                values[quiet] = 0.0
            rows = clear_columns(rows, quiet)
            if (quiet & ~self.quiet).any():
                self.held = self.held.with_columns_cleared(quiet)
                self.errors = replace(self.errors, rotations=np.where(quiet, 0.0, self.errors.rotations))
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
            self.held = self.held.with_pieces(rows.times(factor), (between * factor)[None].astype(self.held.dtype))
            return
        piece = np.empty((len(rows) + bool(between.any()), len(between)), self.held.dtype)
        np.multiply(rows, factor, out=piece[: len(rows)], casting="same_kind")
        piece[len(rows) :] = between * factor
        self.held = self.held.with_pieces(piece)
        if self.n_held > 3 * self.size + 1:
            self._compress()
        elif not self.errors.action.rows and self.n_held >= self.size:
            # The first compression needs a solution to compare with.
            self._remember(_rotations(self._solve(self._cross_in_units())))
        elif self._is_seed:
            cross = self._cross_in_units()
            solution = self._solve(cross)
            self._estimate_error(cross, solution, self._errors_of_seed(_rotations(solution)))

    @property
    def _is_seed(self) -> bool:
        """Whether the state started from a solution and has not been compressed since."""
        return self.errors.unresolved > 0 and len(self.held.pieces[0]) == len(self.errors.rotations)

    def _errors_of_seed(self, R: Float64Array) -> Float64Array:
        """Estimate the error of the action on rotations R if the state started from a solution."""
        if not self._is_seed:
            return np.zeros(R.shape[1])
        return errors_of_seed(self.errors, self.held.pieces, R, self.weight, self._total(self.lost), self._n_varying)

    def _settle_unit(self, *, widest: float) -> None:
        """Adapt the unit to the data if it is far off, or unequally so across columns."""
        squares = self.x_squares if self.scale else np.full_like(self.x_squares, self.x_squares.max())
        varies = squares > 0
        target = np.where(varies, np.sqrt(squares), 1.0)
        ratio = np.where(varies, self.unit / target, 0.0)
        low, high = ratio[varies].min(initial=_FAR_OFF), ratio[varies].max(initial=1 / _FAR_OFF)
        far_off = high > widest * low or low < 1 / _FAR_OFF or high > _FAR_OFF
        if far_off or self.unit[~varies].min(initial=1.0) < _SMALLEST_UNIT or not self.held.pieces:
            self.held = self.held.scaled(ratio)
            self.unit = target
            self.errors = self.errors.scaled(ratio, self._change_of_squares(ratio))

    def _compress(self) -> None:
        """Replace the rows with ``size`` combinations of them, and the residuals with one."""
        self.compressed = True
        self._settle_unit(widest=_WIDEST_FOR_COMPRESSION)
        cross = self._cross_in_units()
        solution = self._solve(cross)
        before = self.held.act_in_own_precision(self.errors.rotations.T)[0]
        errors_of_seed = self._errors_of_seed(_rotations(solution))
        self.held, lost = self.held.compressed(_rotations(solution), self.size, self._in_units(self.x_squares))
        self.lost = lost * self.unit * self.unit
        self._settle_dtype()
        changes = before - self.held.act_in_own_precision(self.errors.rotations.T)[0]
        action = self.errors.action.after_compression(self._totals, changes, errors_of_seed)
        self.errors = replace(self.errors, action=action)
        self._remember(_rotations(solution))
        self._estimate_error(cross, solution)

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

    @property
    def _totals(self) -> Totals:
        """Weight, effective number and sum of squares, in units, of all rows."""
        return Totals(self.weight, self.effective_rows, self._total(self.x_squares))

    def _remember(self, R: Float64Array) -> None:
        """Store the rotations of the present solution, to which those of later ones are compared."""
        self.errors = self.errors.preserving(np.where(self.x_squares > 0, R.T, 0.0).T, self._totals)

    def _expect_errors(self, variance: float) -> None:
        """Estimate the errors due to a loss of which the largest variance is known, for the current solution."""
        cross = self._cross_in_units()
        solution = self._solve(cross)
        expected = errors_of_loss(solution, self._totals, self._total(self.lost), variance, self._n_varying)
        if self._is_seed:
            expected *= SEED_SAFETY**2
        self.errors = replace(self.errors, action=self.errors.action.plus(expected))
        self._estimate_error(cross, solution)

    def _estimate_error(self, cross: Float64Array, solution: Factors, least: Float64Array | None = None) -> None:
        """Solve again with the action perturbed by the expected error, or ``least``, and measure the angle."""
        c = solution.n_components
        of_subspace = np.zeros(c)
        # When the next compression is due.
        errors = self.errors.action.expected(self._totals, 2 * self.size, self.forgetting)
        if least is not None:
            errors[:c] = np.maximum(errors[:c], least)
        if self.held.residuals and errors.any():
            residual = np.sum([residual.diagonal for residual in self.held.residuals], axis=0)
            noise = mixture(len(cross), self.n_components) * np.sqrt(residual)[:, None]
            noise *= errors / np.linalg.norm(noise, axis=0)
            turned = self._solve(cross, noise)
            for k in range(1, min(c, turned.n_components)):  # The first weights depend only on the cross-covariance.
                of_subspace[k] = largest_sine(turned.x_weights[:, : k + 1], solution.x_weights[:, : k + 1])
            of_subspace[turned.n_components :] = 1.0
        self.errors = replace(self.errors, of_subspace=of_subspace)

    def _settle_dtype(self) -> None:
        """Store rows in float32 if rounding errors are negligible relative to the discarded part."""
        self.held = self.held.as_type(np.float32 if self._lost_share() > _SINGLE_PRECISION_LOSS else np.float64)

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

    def _change_of_squares(self, ratio: Float64Array) -> float:
        """Return the factor by which squares change on average if columns are multiplied by a ratio."""
        squares = self._in_units(self.x_squares)
        return float(squares @ np.minimum(ratio, _FAR_OFF) ** 2) / (float(squares.sum()) or 1.0)

    @property
    def _n_varying(self) -> int:
        """Number of columns that vary."""
        return int(np.count_nonzero(self.x_squares))

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
        self.rounding = self.variance_resolution = max(_LEAST_PRESERVED, float(np.finfo(state.held.dtype).eps))

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        action, square = self.state.held.act_in_own_precision(v)
        if self.noise is not None:
            action += self.noise[:, self.n_applied] * np.sqrt(square)
            self.n_applied += 1
        return action, float(square)
