r"""The Gram actions of the training rows of each fold, and held-out scores, from shared reads of the data.

With the rows :math:`H_f` of fold f, centred on their own mean :math:`\bar x_f`, their weight :math:`n_f`, and the mean
:math:`\bar x_{-g}` of all rows but those of fold g,

.. math::
    S_{-g} v = \sum_{f \ne g} H_f^T H_f v + n_f \, d_{fg} (d_{fg}^T v) , \quad d_{fg} = \bar x_f - \bar x_{-g} .

One read of the rows thus serves the models of all folds, and one matrix product replaces a product with a vector per
fold. Scaling by the training rows of each fold is a factor of v and of the result. Centring each fold on its own mean
keeps its outliers out of models that are not trained on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._core.tiles import MIN_TILE_ROWS, TILE_BYTES, dense_tiles
from .._core.types import Float64Array, Rows
from ..rows import Block, TrainingRows
from ..states.folds import training_states
from ..states.gram import Gram
from ..states.moments import ROUNDING, Moments, centred_rows, moments_of, relative_means
from .joint import dot_products
from .multipass import _LARGEST_SPARSE_MEAN

# Number of sets up to which separate products with vectors are faster, and bytes up to which call overhead matters.
_FEW_SETS = 8
_LITTLE_BYTES = 1 << 20
# Products with fewer columns are not faster.
_COLUMNS = 8

FoldsOf = Callable[[int, int], NDArray[np.int64]]
"""Returns the folds of rows, given the index of the first row and the number of rows."""


class Summary(Protocol):
    """Results of some rows of a fold."""

    def merge(self, other: Any) -> Any:
        """Add the results of other rows."""


Kept = TypeVar("Kept", bound=Summary)


class FoldReads:
    """Products of the training rows of every fold with vectors, after a first read for the moments of the folds.

    A set of rows is identified by the fold that it leaves out; the number of folds identifies all rows.

    Parameters
    ----------
    rows : TrainingRows
        Rows that can be read again.
    folds_of : callable
        Returns the folds of rows, given the index of the first row and the number of rows.
    n_folds : int
        Number of folds, all of which have rows.
    planned_reads : int
        Total number of reads, for progress.
    folds : sequence of Moments, optional
        The moments of each fold, if known: :meth:`read_folds` is then not needed.

    Attributes
    ----------
    folds : list of Moments
        The moments of each fold.
    training : list of Moments
        The moments of all rows except those of each fold; the last entry is for all rows.
    held : list of ndarray
        Rows of each fold if held in memory, centred on its mean and multiplied by the roots of the weights.
    n_reads : int
        Number of reads so far.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.rows import ArrayRows
    >>> from plstream.solvers import FoldReads
    >>> X = np.array([[1.0], [2.0], [6.0], [7.0]])
    >>> reads = FoldReads(ArrayRows(X, X), lambda first, n: (first + np.arange(n)) % 2, 2, 1).read_folds()
    >>> actions, squares = reads.apply_jointly(np.ones((3, 1)), range(3))
    >>> actions.ravel().tolist(), squares.tolist()
    ([12.5, 12.5, 26.0], [12.5, 12.5, 26.0])
    """

    def __init__(
        self,
        rows: TrainingRows,
        folds_of: FoldsOf,
        n_folds: int,
        planned_reads: int,
        folds: Sequence[Moments] | None = None,
    ) -> None:
        self.rows = rows
        self.folds_of = folds_of
        self.n_folds = n_folds
        self.planned_reads = planned_reads
        self.n_reads = 0
        self.blocks: list[Block] = []
        self.held: list[Float64Array] = []
        if folds is not None:
            self._set_folds(folds)

    def read_folds(self) -> Self:
        """Make the first read; rows in memory are copied by fold, centred, times the roots of their weights."""
        if not self.rows.in_memory:
            self._set_folds([*self._by_fold(lambda _, block: moments_of(block)).values()])
            return self
        self.n_reads = self.planned_reads = 1
        block = self.rows.as_one_block()
        numbers = self.folds_of(0, block.n_rows)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers)).tolist()
        parts = [order[start:end] for start, end in pairwise([0, *ends])]
        blocks = [block.part(part) for part in parts]
        try:
            folds, self.held = map(list, zip(*(centred_rows(block, overwrite=True) for block in blocks), strict=True))
        except ValueError:
            # The error is about rows that have been overwritten.
            for part in parts:
                moments_of(block.part(part))
            raise
        self.blocks = [block._replace(X=rows) for block, rows in zip(blocks, self.held, strict=True)]
        self._set_folds(folds)
        return self

    @classmethod
    def of_centred(cls, folds: Sequence[Moments], rows: Sequence[Float64Array]) -> Self:
        """Return an instance for rows in memory, centred by fold and multiplied by the roots of the weights."""
        reads = cls.__new__(cls)
        reads.n_folds, reads.held = len(folds), list(rows)
        reads._set_folds(folds)
        return reads

    def _set_folds(self, folds: Sequence[Moments]) -> None:
        self.folds = list(folds)
        self._are_few = sum(rows.nbytes for rows in self.held) <= _LITTLE_BYTES
        # The rows held in memory and those of the means, and the sets that do not include them; set on first use.
        self._stacked = np.empty((0, 0))
        self.training = training_states(self.folds)
        self._weight = np.array([[fold.weight] for fold in self.folds])
        self._roots = np.sqrt(self._weight)
        origins = np.array([fold.x_origin for fold in self.folds])
        offsets = np.array([fold.x_offset for fold in self.folds])
        self.means = origins + offsets
        # The mean of a fold is the sum of two numbers, but rows read again are centred on the rounded sum.
        self._errors = (origins - self.means) + offsets
        origin, offset, self._fold_means = relative_means(origins, offsets)
        self._set_means = np.array([(one.x_origin - origin) + (one.x_offset - offset) for one in self.training])
        largest = 0.0 if self.held else self._largest_mean()
        self.centres_products = largest <= _LARGEST_SPARSE_MEAN
        # Relative rounding error of a sum of products; where products are centred, means increase it.
        self.rounding = ROUNDING * max(1.0, largest) if self.centres_products else ROUNDING
        # Scores are accurate to rounding errors, so variances to the squares of these.
        self.variance_resolution = self.rounding**2

    def _largest_mean(self) -> float:
        """Return the largest mean of a fold, in standard deviations of a training set."""
        least = np.full(self.means.shape[1], np.inf)
        for one in self.training:
            deviation = np.sqrt(one.x_squares / max(one.weight, 1e-300))
            # Constant columns do not count.
            np.minimum(least, deviation, out=least, where=one.x_squares > 0)
        with np.errstate(divide="ignore", over="ignore"):
            return float((np.abs(self.means) / least).max(initial=0.0))

    def apply_jointly(self, V: Float64Array, sets: range) -> tuple[Float64Array, Float64Array]:
        """Return Sv and v'Sv for each set of rows, with v the corresponding row of V, from one read of the data."""
        set_means = self._set_means[sets.start : sets.stop]
        set_scores = dot_products(set_means, V)
        if self.held and (len(sets) > _FEW_SETS or self._are_few):
            return self._stacked_actions(V, sets, set_means, set_scores)
        total = _Actions(np.zeros_like(V), np.zeros(len(V)))
        if self.held:
            self._add_held(V, sets, total)
        else:
            self._read(_BlockActions(self, V, sets), total)
            self._add_rows(self._errors, self._errors @ V.T, sets, total, -1.0)
        between = self._fold_means @ V.T - set_scores
        if self.n_folds == 2:
            # A single training fold has no difference from its mean.
            between[:, [left_out < 2 for left_out in sets]] = 0.0
        weights = self._add_rows(self._fold_means, between, sets, total, 1.0)
        total.actions -= weights[:, None] * set_means
        return total.actions, total.squares

    def _stacked_actions(
        self, V: Float64Array, sets: range, set_means: Float64Array, set_scores: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the same from two products with all rows in memory, followed by one row for the mean of each fold."""
        n_folds, roots = self.n_folds, self._roots
        if len(self._stacked) == 0:
            self._stacked = np.concatenate([*self.held, roots * self._fold_means])
            folds = np.arange(n_folds)
            row_folds = np.concatenate([np.repeat(folds, list(map(len, self.held))), folds])
            self._absent = row_folds[:, None] == np.arange(n_folds + 1)
        scores = self._stacked @ V.T
        between = scores[-n_folds:]
        between -= roots * set_scores
        np.copyto(scores, 0.0, where=self._absent[:, sets.start : sets.stop])
        if n_folds == 2:
            # A single training fold has no difference from its mean.
            between[:, [left_out < 2 for left_out in sets]] = 0.0
        actions = scores.T @ self._stacked
        actions -= np.dot(roots[:, 0], between)[:, None] * set_means
        return actions, np.einsum("ij,ij->j", scores, scores)

    def _add_held(self, V: Float64Array, sets: range, total: _Actions) -> None:
        """Add the actions of rows in memory, without the differences between means."""
        for fold, rows in enumerate(self.held):
            for k, left_out in enumerate(sets):
                if left_out != fold:
                    # With rows in cache, this is faster than a product with few columns.
                    scores = rows @ V[k]
                    total.actions[k] += scores @ rows
                    total.squares[k] += scores @ scores

    def _add_rows(
        self, rows: Float64Array, scores: Float64Array, sets: range, total: _Actions, sign: float
    ) -> Float64Array:
        """Add one row per fold, with the weight of the fold, to the sets that include the fold."""
        absent = np.arange(self.n_folds)[:, None] == np.asarray(sets)
        weighted = np.where(absent, 0.0, sign * self._weight * scores)
        total.actions += weighted.T @ rows
        total.squares += np.einsum("ij,ij->j", weighted, scores)
        sums: Float64Array = weighted.sum(axis=0)
        return sums

    def held_out(
        self, projections: Mapping[int, Float64Array], summarise: Callable[[int, Float64Array, Block], Kept]
    ) -> dict[int, Kept]:
        """Return the results of some folds, from one read.

        Parameters
        ----------
        projections : mapping of int to ndarray of shape (m, c)
            For each fold, the matrix that its rows are multiplied by, after centring on their own mean.
        summarise : callable
            Returns the results of some rows, given their fold, their scores, and their block.
        """
        if not self.blocks:
            return self._by_fold(
                lambda fold, block: summarise(fold, self._scores(fold, block.X, projections[fold]), block), projections
            )
        kept = {}
        for fold, projection in projections.items():
            block = self.blocks[fold]
            scores = block.X @ projection
            if block.weight is not None:
                scores /= np.sqrt(block.weight)[:, None]
            kept[fold] = summarise(fold, scores, block)
        return kept

    def fold_actions(self, R: Float64Array) -> list[Float64Array]:
        """Return the Gram action of each fold on the columns of a matrix, each of shape (m, c), from one read."""

        def action(fold: int, block: Block) -> _Sum:
            scores = self._scores(fold, block.X, R)
            weighted = scores if block.weight is None else scores * block.weight[:, None]
            mean = self.means[fold]
            if self.centres_products:
                return _Sum(_in_float64(block.X).T @ weighted - np.outer(mean, weighted.sum(axis=0)))
            total = np.zeros_like(R)
            for rows, tile in dense_tiles(block.X, mean):
                total += tile.T @ weighted[rows]
            return _Sum(total)

        parts = zip(self._by_fold(action).values(), self._errors, self._weight, strict=True)
        return [part.total - weight * np.outer(error, error @ R) for part, error, weight in parts]

    def _scores(self, fold: int, X: Rows, R: Float64Array) -> Float64Array:
        """Return (X - mean) R for rows of a fold."""
        mean = self.means[fold]
        if self.centres_products:
            scores: Float64Array = _in_float64(X) @ R - mean @ R
            return scores
        scores = np.empty((X.shape[0], R.shape[1]))
        for rows, tile in dense_tiles(X, mean):
            np.dot(tile, R, out=scores[rows])
        return scores

    def _by_fold(self, work: Callable[[int, Block], Kept], chosen: Collection[int] | None = None) -> dict[int, Kept]:
        """Return the results of all folds, or of the chosen ones, from one read."""

        def of_block(block: Block) -> _ByFold:
            folds = self.folds_of(block.first, block.n_rows)
            present = [int(fold) for fold in np.unique(folds) if chosen is None or fold in chosen]
            return _ByFold({fold: work(fold, block.part(np.flatnonzero(folds == fold))) for fold in present})

        total = _ByFold({})
        self._read(of_block, total)
        return dict(sorted(total.kept.items()))

    def _read(self, work: Callable[[Block], Any], total: Summary) -> None:
        """Add to a total the results of ``work`` for the blocks of one read."""
        self.n_reads += 1
        for part, _ in self.rows.parts(work, 1.0, f"read {self.n_reads} of {self.planned_reads}"):
            total.merge(part)


@dataclass
class _Actions:
    """Sv and v'Sv of some rows for several sets."""

    actions: Float64Array
    squares: Float64Array

    def merge(self, other: Self) -> None:
        self.actions += other.actions
        self.squares += other.squares


@dataclass
class _Sum:
    """A sum over rows."""

    total: Float64Array

    def merge(self, other: Self) -> None:
        self.total += other.total


@dataclass
class _ByFold:
    """Results of each fold so far."""

    kept: dict[int, Any]

    def merge(self, other: Self) -> None:
        for fold, part in other.kept.items():
            if fold in self.kept:
                self.kept[fold].merge(part)
            else:
                self.kept[fold] = part


class FoldGrams:
    """The same actions, computed from the Gram matrices of the folds.

    Parameters
    ----------
    folds : sequence of Gram
        The state of each fold.
    """

    rounding = Gram.rounding
    variance_resolution = Gram.variance_resolution

    def __init__(self, folds: Sequence[Gram]) -> None:
        self.training = training_states(folds)

    def apply_jointly(self, V: Float64Array, sets: range) -> tuple[Float64Array, Float64Array]:
        """Return Sv and v'Sv for each set of rows, with v the corresponding row of V."""
        actions, squares = zip(*(self.training[k].apply(v) for k, v in zip(sets, V, strict=True)), strict=True)
        return np.array(actions), np.array(squares)


class _BlockActions:
    """The contribution of a block to the actions, of rows centred on the means of their folds."""

    def __init__(self, reads: FoldReads, V: Float64Array, sets: range) -> None:
        self.reads = reads
        # Products with six columns are slower than with eight.
        n_more = -len(V) % _COLUMNS
        self.V = np.concatenate([V, np.zeros((n_more, V.shape[1]))])
        self.sets = np.array([*sets, *[reads.n_folds] * n_more])
        self.n_sets = len(V)
        # Without explicit centring, nothing is copied, and sparse rows stay sparse.
        self.centres = reads.means @ self.V.T if reads.centres_products else None

    def __call__(self, block: Block) -> _Actions:
        folds = self.reads.folds_of(block.first, block.n_rows)
        absent = folds[:, None] == self.sets
        weight = block.weights
        total, sums = (
            _Actions(np.zeros_like(self.V), np.zeros(len(self.V))),
            np.zeros((self.reads.n_folds, len(self.V))),
        )
        for rows in self._tiles(block.X):
            tile = self._tile(block.X[rows], folds[rows])
            scores = tile @ self.V.T
            if self.centres is not None:
                scores -= self.centres[folds[rows]]
            scores[absent[rows]] = 0.0
            weighted = scores * weight[rows, None]
            total.actions += (tile.T @ weighted).T if sparse.issparse(tile) else weighted.T @ tile
            total.squares += np.einsum("ij,ij->j", weighted, scores)
            np.add.at(sums, folds[rows], weighted)
        if self.centres is not None:
            total.actions -= sums.T @ self.reads.means
        return _Actions(total.actions[: self.n_sets], total.squares[: self.n_sets])

    def _tiles(self, X: Rows) -> list[slice]:
        """Return the slices of rows to process: all at once, or few enough that a copy stays in cache."""
        n_rows, n_columns = X.shape
        copied = self.centres is None or X.dtype != np.float64
        step = max(MIN_TILE_ROWS, TILE_BYTES // (8 * n_columns)) if copied else n_rows
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def _tile(self, X: Rows, folds: NDArray[np.int64]) -> Rows:
        if self.centres is not None:
            return _in_float64(X)
        dense = X.toarray() if sparse.issparse(X) else X
        return np.subtract(dense, self.reads.means[folds], dtype=np.float64)


def _in_float64(X: Rows) -> Rows:
    return X.astype(np.float64, copy=False)
