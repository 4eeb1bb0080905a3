"""Training on rows with missing values, which the factor model completes before a state absorbs them.

A stream buffers rows with missing values until a block is full. The block is completed by the model of the earlier rows
or, while there are few of these, iteratively by a model that includes the block. Results therefore do not depend on how
the stream is divided into chunks. Rows that can be read again are completed by the model of all rows, iterating until
convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._core.errors import NonFiniteError
from .._core.schema import Boolean, Count, Numbers, Object, stored
from .._core.tiles import as_dense, default_block_rows, require_finite
from .._core.types import Array, Float64Array, Rows
from ..rows import Block, Part, TrainingRows
from ..solvers.completion import FactorModel, Gaps, has_gaps, observed_means
from ..solvers.solution import Solution
from ..states import Buffered, Moments
from ..states.moments import centred_rows

# Completing a block of a stream: maximum number of rounds, and the relative change of completed cells at which to stop.
_MOST_ROUNDS = 60
_SMALL_CHANGE = 1e-4
# Once the earlier rows are this many times those of a block, their model alone completes it.
_ENOUGH_BLOCKS = 4


def _has_no_infinity(array: Array) -> bool:
    return not np.isinf(array).any()


@stored(
    {
        "n_components": Count(1),
        "scale": Boolean(),
        "from_y": Boolean(),
        "gaps": Object(Gaps, m="m", n="m+q"),
        "incomplete": Boolean(),
        "_X": Numbers("w?", "m", dtypes=("float64", "float32"), nan=True),
        "_Y": Numbers("w?", None, nan=True),
    },
    {"rows that wait have no infinity": lambda its: _has_no_infinity(its._X) and _has_no_infinity(its._Y)},
)
class CompletingStream(Buffered[Any]):
    """A stream of rows that may have missing values.

    Rows without any observed response are left out: completed by a model of few rows, they would later count as if
    their responses were known.
    """

    n_components: int
    scale: bool
    from_y: bool
    """Whether missing cells of X are also estimated from y. False if prediction errors are measured."""
    gaps: Gaps
    """Missing cells of the absorbed rows. Columns without any value are zero in the state."""
    incomplete: bool
    """Whether any cell has been missing so far."""

    @classmethod
    def of(
        cls, stream: Buffered[Any], *, n_components: int, scale: bool, from_y: bool = True, gaps: Gaps | None = None
    ) -> Self:
        """Return a completing stream with the rows of a stream; ``gaps`` are its missing cells, if any."""
        twin = cls.__new__(cls)
        vars(twin).update(vars(stream))
        twin.n_components, twin.scale, twin.from_y = n_components, scale, from_y
        if not isinstance(stream, CompletingStream):
            twin.gaps = gaps or Gaps.none(stream.state.shape, stream.state.weight)
            twin.incomplete = twin.gaps.any
        return twin

    def all_gaps(self) -> Gaps:
        """Return the missing cells of all rows, absorbed or waiting."""
        return self._gaps_with(self._waiting()) if self.n_waiting else self.gaps

    def with_rows(self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None = None) -> Self:
        """Return the stream with more rows; raise ValueError if values are infinite, too large or too small."""
        weight = np.ones(len(Y)) if sample_weight is None else sample_weight
        if has_gaps(Y):
            block = Block(X, Y, weight).labelled()
            X, Y, weight = block.X, block.Y, np.asarray(block.weight)
        twin = self
        try:
            peaks = self._require_range(X, Y, weight)
        except NonFiniteError as error:
            if not error.is_missing:
                raise
            peaks = self._require_range(_without_gaps(X), _without_gaps(Y), weight)
            twin = self._twin()
            twin.incomplete = True
        return twin._with_checked_rows(X, Y, weight, peaks)

    def merged(self, other: Buffered[Any], *, later: bool = False) -> Self:
        """Return a stream of the rows of both streams; if ``later``, those of the other came after these."""
        theirs = self.of(other, **self._parameters)
        mine, added = self._copy_of_current(), theirs._copy_of_current()
        here, there = self.all_gaps(), theirs.all_gaps()
        # The mean of a column without any value is arbitrary.
        _move_means(mine, added, here.unseen & ~there.unseen)
        _move_means(added, mine, there.unseen & ~here.unseen)
        if later:
            mine.forget(other.n_rows)
            here.shrink(mine.forgetting**other.n_rows)
        twin = self._around(mine.merge(added))
        twin.gaps, twin.incomplete = here.merged(there), self.incomplete or theirs.incomplete
        return twin

    def with_classes(self, positions: Sequence[int]) -> Self:
        """Return the stream with new classes, without rows, at the given positions among the resulting classes."""
        twin = super().with_classes(positions)
        twin.gaps = self.gaps.with_targets(twin.state.shape[1])
        return twin

    def without_waiting(self) -> Self:
        """Return a stream without buffered rows, all absorbed: it is smaller to send to another process."""
        twin = super().without_waiting()
        twin.gaps = self.all_gaps()
        return twin

    def around(self, stream: Buffered[Any]) -> Self:
        """Return a completing stream of the same rows with the state of another stream."""
        return self.of(stream, **self._parameters, gaps=self.all_gaps())

    def _around(self, state: Any) -> Self:
        twin = self.of(super()._around(state), **self._parameters)
        twin.gaps, twin.incomplete = Gaps.none(state.shape, state.weight), self.incomplete
        return twin

    @property
    def _parameters(self) -> dict[str, Any]:
        return {"n_components": self.n_components, "scale": self.scale, "from_y": self.from_y}

    @property
    def _holds_sparse_rows(self) -> bool:
        # Rows are completed as dense ones, by the model of the rows of the last block.
        return False

    def _gaps_with(self, block: Block) -> Gaps:
        """Return the missing cells of the absorbed rows and of a block."""
        factor = self.state.forgetting**block.n_rows
        aged = self._of_classes(block).aged(self.state.forgetting)
        assert aged.weight is not None
        own = Gaps.of(aged) if self.incomplete else Gaps.none(self.state.shape, float(aged.weight.sum()))
        return self.gaps.merged(own, factor)

    def _absorb(self, state: Any, block: Block) -> None:
        """Add a block, completed if necessary, to a state."""
        gaps = self._gaps_with(block)
        super()._absorb(state, self._completed(state, block, gaps) if self.incomplete else block)
        if state is self.state:
            self.gaps = gaps

    def _completed(self, state: Any, block: Block, gaps: Gaps) -> Block:
        """Return the completed block, given the state of the earlier rows and the gaps of all rows."""
        if not has_gaps(block.X) and not has_gaps(block.Y):
            return block
        rows = self._of_classes(block)
        means = observed_means(rows)
        if state.n_rows:
            _set_means(state, means, self.gaps.unseen)
            model = self._model(state, state, gaps)
        else:
            model = FactorModel.of_means(means, state.shape[1])
            known = np.flatnonzero(np.logical_not(np.isnan(rows.Y).any(axis=1)))
            if 1 < len(known) < rows.n_rows:
                # Started from the means of y, the rounds converge slowly to a model of the known responses.
                joined = _StateAndRows(state, self._of_classes(self._completed(state, block.part(known), gaps)))
                model = self._model(joined.moments, joined, gaps)
        completed = model.completed_block(rows, from_y=self.from_y)
        if state.n_rows < _ENOUGH_BLOCKS * block.n_rows:
            for _ in range(_MOST_ROUNDS):
                joined = _StateAndRows(state, completed)
                model = self._model(joined.moments, joined, gaps)
                before, completed = completed, model.completed_block(rows, from_y=self.from_y)
                if _relative_change(before, completed, rows, joined.moments) < _SMALL_CHANGE:
                    break
        return completed._replace(n_classes=0)

    def _model(self, moments: Moments, gram: Any, gaps: Gaps) -> FactorModel:
        solution = Solution.of(moments, gram, self.n_components, scale=self.scale, quiet=True)
        return FactorModel.of(solution, gaps)

    def _of_classes(self, block: Block) -> Block:
        return block._replace(n_classes=self.state.shape[1] if self.of_labels else 0)

    def __setstate__(self, saved: dict[str, Any]) -> None:
        super().__setstate__(saved)
        for name in ("n_components", "scale", "from_y", "gaps", "incomplete"):
            setattr(self, name, saved[name])


class _StateAndRows:
    """The Gram action of a state and of rows not yet absorbed, without forming a square matrix."""

    def __init__(self, state: Any, block: Block) -> None:
        n_rows = block.n_rows
        self.state, self.factor = state, state.forgetting**n_rows
        summary, rows = centred_rows(block.aged(state.forgetting))
        self.moments = Moments(*state.shape, forgetting=state.forgetting)
        for name in vars(self.moments):
            value = getattr(state, name)
            setattr(self.moments, name, value.copy() if isinstance(value, np.ndarray) else value)
        self.moments.shrink(self.factor)
        between = self.moments._between_means(summary)
        self.moments.merge(summary)
        self.rows = np.concatenate([rows, between[None]])

    def __getattr__(self, name: str) -> Any:
        # The accuracy of the action.
        return getattr(self.state, name)

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Sv and v'Sv."""
        scores = self.rows @ v
        action, square = scores @ self.rows, float(scores @ scores)
        if self.state.n_rows:
            before = self.state.apply(v)
            action, square = action + self.factor * before[0], square + self.factor * before[1]
        return action, square


def _relative_change(before: Block, after: Block, rows: Block, moments: Moments) -> float:
    """Return the change of completed cells relative to their deviations from the means."""
    change, size = 0.0, 0.0
    for old, new, values, mean, squares in (
        (before.X, after.X, rows.X, moments.x_mean, moments.x_squares),
        (before.Y, after.Y, rows.Y, moments.y_mean, moments.y_squares),
    ):
        missing = np.isnan(as_dense(values))
        if missing.any():
            unit = np.sqrt(np.where(squares > 0, squares, 1.0))
            change += float((np.square((new - old) / unit)[missing]).sum())
            size += float((np.square((new - mean) / unit)[missing]).sum())
    return float(np.sqrt(change / size)) if size > 0 else 0.0


def _set_means(state: Moments, means: Float64Array, chosen: NDArray[np.bool_]) -> None:
    """Set the means of columns that are zero so far; all their values then equal the mean."""
    m = state.shape[0]
    for columns, origin, offset, values in (
        (chosen[:m], "x_origin", "x_offset", means[:m]),
        (chosen[m:], "y_origin", "y_offset", means[m:]),
    ):
        if columns.any():
            setattr(state, origin, np.where(columns, values, getattr(state, origin)))
            setattr(state, offset, np.where(columns, 0.0, getattr(state, offset)))


def _move_means(state: Moments, other: Moments, chosen: NDArray[np.bool_]) -> None:
    _set_means(state, np.concatenate([other.x_mean, other.y_mean]), chosen)


def with_means_of_others(streams: Sequence[CompletingStream]) -> list[Any]:
    """Return the states of streams; columns without values in one stream get the mean of the others."""
    states = [stream.current() for stream in streams]
    if not any(stream.incomplete for stream in streams):
        return states
    gaps = [stream.all_gaps() for stream in streams]
    weights = np.array([one.weight for one in gaps])
    values = np.array([np.concatenate([state.x_mean, state.y_mean]) for state in states])
    total = weights.sum(axis=0)
    means = (weights * values).sum(axis=0) / np.where(total > 0, total, 1.0)
    for i, one in enumerate(gaps):
        if one.unseen.any() and states[i].n_rows:
            states[i] = states[i].copy()
            _set_means(states[i], means, one.unseen)
    return states


def _without_gaps(rows: Rows) -> Rows:
    """Return rows with NaN replaced by zero."""
    if not has_gaps(rows):
        return rows
    filled = rows.copy()
    values = filled.data if sparse.issparse(filled) else filled
    values[np.isnan(values)] = 0.0
    return filled


def gaps_of_labelled(block: Block) -> Gaps:
    """Return the missing cells of the rows with a response."""
    return Gaps.of(block.labelled())


class CompletedRows(TrainingRows):
    """Rows whose missing values are completed as they are read. Rows without any response are left out."""

    def __init__(self, rows: TrainingRows, model: FactorModel) -> None:
        self.rows, self.model, self.n_rows = rows, model, rows.n_rows
        self.n_columns, self.n_targets, self.n_classes = rows.n_columns, rows.n_targets, rows.n_classes
        self.compiled, self.in_memory = rows.compiled, rows.in_memory

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Read the rows, starting at the beginning of a block."""
        labelled = (block.labelled() for block in self.rows.blocks(start))
        return (self.model.completed_block(block) for block in labelled if block.n_rows)

    def parts(
        self, work: Callable[[Block], Part], forgetting: float, label: str, start: int = 0
    ) -> Iterator[tuple[Part, int]]:
        """Complete each block where it is stored."""
        return self.rows.parts(partial(_work_on_completed, self.model, work), forgetting, label, start)

    def require_finite(self) -> None:
        """Raise ValueError for infinity, which is not a missing value."""
        self.rows.require_finite()


def _work_on_completed(model: FactorModel, work: Callable[[Block], Any], block: Block) -> Any:
    return work(model.completed_block(block.labelled()))


@dataclass(frozen=True)
class CompletedBefore:
    """A function of rows; if its check for finite numbers finds missing values, they are completed first."""

    function: Callable[[Rows], Array]
    model: FactorModel

    def __call__(self, rows: Rows) -> Array:
        """Apply the function, to completed rows if values are missing."""
        try:
            return self.function(rows)
        except NonFiniteError as error:
            if not error.is_missing:
                raise
        require_finite("X", rows, allow_missing=True)
        step = default_block_rows(rows)
        starts = range(0, rows.shape[0], step)
        return np.concatenate([self.function(self.model.completed(rows[start : start + step])) for start in starts])
