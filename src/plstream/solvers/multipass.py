r"""The Gram action by reading the data again: exact PLS of data of any size in c + 1 reads.

For each block :math:`t = (X_b - \bar x) v`, then :math:`S v \mathrel{+}= (X_b - \bar x)^T t` while its rows are in
cache: one read of the data per component, and no array the size of the data. Small data is held in memory instead; if
it is too small for compiled loops to pay off, it is centred once and multiplied by BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any, Self

import numpy as np
from scipy import sparse

from .._core.compiled import compiled, readable
from .._core.schema import Count, Each, Number, Numbers, Object, OrNone, solved_numbers, stored
from .._core.tiles import dense_tiles
from .._core.types import Float64Array, FloatArray
from ..rows import Block, TrainingRows
from ..states.buffer import Buffered
from ..states.gram import Gram
from ..states.moments import ROUNDING, Moments, centred_rows, moments_of

# Multiplications for a Gram matrix that take a few percent of the time of the smallest fit.
_LITTLE_WORK = 1 << 19
# Largest mean of a column, in standard deviations, that is subtracted from the products instead of the data. Rounding
# errors grow by this factor: the price of keeping sparse data sparse, and small for dense data.
_LARGEST_SPARSE_MEAN = 1e3
_LARGEST_DENSE_MEAN = 8.0


@stored()
@dataclass
class Sums:
    """S v and v'Sv of the rows read so far, without the correction for the mean."""

    v: Annotated[Float64Array, solved_numbers("m")]
    action: Annotated[Float64Array, Numbers("m", nan=True)]
    square: Annotated[Any, Number(nan=True)] = 0.0

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.v.nbytes + self.action.nbytes

    def merge(self, other: Sums) -> Self:
        """Add the sums of other rows."""
        self.action += other.action
        self.square += other.square
        return self

    def shrink(self, factor: float) -> None:
        """Multiply the weights of the rows so far by a factor."""
        self.action *= factor
        self.square *= factor


@stored(
    {"v": solved_numbers("k?", "m"), "action": Numbers("k?", "m", nan=True), "square": Numbers("k?", "k?", nan=True)}
)
@dataclass
class BlockSums(Sums):
    """S V and V'SV of several vectors, stored as rows."""


def _n_first(its: Any) -> int | None:
    """Return the number of rows of the first read so far, in an object or a file; None if it has not begun."""
    if its.stream is not None:
        return int(its.stream.state.n_rows) + int(its.stream.n_waiting)
    return None if its.moments is None else int(its.moments.n_rows)


@stored(
    rules={
        "reads are the first one and one for every action": lambda its: (
            len(its.actions) in {max(its.n_reads - 1, 0), its.n_reads}
        ),
        "there are moments or a stream": lambda its: (
            _n_first(its) is not None if its.n_reads or its.n_rows else None in {its.moments, its.stream}
        ),
        # Rows of weight zero, and rows without a response, are not in the moments.
        "the first read is at least as far as its moments": lambda its: (
            its.n_reads > 0 or (_n_first(its) or 0) <= its.n_rows
        ),
    }
)
@dataclass
class Journal:
    """The results of reads, block by block. A :class:`MultipassGram` resumes from it."""

    moments: Annotated[Moments | None, OrNone(Object(Moments, m="m"))] = None
    """Moments of the rows of the first read."""
    stream: Annotated[Buffered[Any] | None, OrNone(Object(Buffered, m="m"))] = None
    """The stream with these rows, if it replaces the moments."""
    actions: Annotated[list[Sums], Each(Object(Sums, BlockSums, m="m"))] = field(default_factory=list)
    """Results of later reads, the last one possibly incomplete."""
    n_reads: Annotated[int, Count()] = 0
    """Number of complete reads."""
    n_rows: Annotated[int, Count()] = 0
    """Number of rows done in the current read."""
    tell: Callable[[int], None] | None = None
    """Called with the number of rows after each block has been added to all of the above."""

    @property
    def n_first(self) -> int | None:
        """Number of rows of the first read; None if it has not begun."""
        return _n_first(self)

    def continued_stream(self, stream: Buffered[Any]) -> Buffered[Any]:
        """Return the stream of the journal, or start the journal with the given one; the first read is added to it."""
        self.stream = self.stream or stream
        if (type(self.stream.state), self.stream.state.shape) != (type(stream.state), stream.state.shape):
            raise JournalError("The journal of an interrupted fit belongs to other data.")
        return self.stream

    def add_to_stream(self, stream: Buffered[Any], n_rows: int) -> None:
        """Store the stream after ``n_rows`` more rows of the first read."""
        self.stream = stream
        self.n_rows += n_rows
        if self.tell is not None:
            self.tell(n_rows)

    def continued_moments(self, moments: Moments) -> Moments:
        """Return the moments of the journal, or start the journal with those given; the first read is added to them."""
        self.moments = self.moments or moments
        if self.moments.shape != moments.shape:
            raise JournalError("The journal of an interrupted fit belongs to other data.")
        return self.moments

    def continued_sums(self, sums: Sums, n_reads: int) -> Sums:
        """Return the sums of the journal, or continue the journal with those given; the next read is added to them."""
        if len(self.actions) < n_reads:
            self.actions.append(replace(sums, v=sums.v.copy()))
        known = self.actions[n_reads - 1]
        if type(known) is not type(sums) or not np.array_equal(known.v, sums.v):
            raise JournalError(
                "The journal of an interrupted fit belongs to other data, or to a machine or libraries with "
                "different rounding."
            )
        return known

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "tell"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, actions=list(state["actions"]), tell=None)


class JournalError(RuntimeError):
    """The journal belongs to other data, or to a processor or libraries with different rounding."""


class MultipassGram:
    """The Gram action of rows with one read per application, after a first read for their moments.

    Parameters
    ----------
    rows : TrainingRows
        Rows that can be read again.
    forgetting : float in (0, 1], default=1.0
        Factor by which the weight of a row shrinks with every later row.
    planned_reads : int, optional
        Total number of reads, for progress.
    journal : Journal, optional
        Previous reads of the same rows, to which further ones are added. Rows must have no weights, and blocks must
        end at the same rows; results are then bit-identical.
    moments : Moments, optional
        Moments of the rows, if they are known: :meth:`read_moments` is then not needed.

    Attributes
    ----------
    moments : Moments
        Means, cross-covariance and sums of squares.
    n_reads : int
        Number of reads so far, including those in the journal.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.rows import ArrayRows
    >>> from plstream.solvers import MultipassGram
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [6.0, 2.0]])
    >>> action, square = MultipassGram(ArrayRows(X, X[:, :1])).read_moments().apply(np.array([1.0, 0.0]))
    >>> action.tolist(), square
    ([14.0, 5.0], 14.0)
    """

    lost = 0.0
    subspace_error = np.zeros(0)

    def __init__(
        self,
        rows: TrainingRows,
        *,
        forgetting: float = 1.0,
        planned_reads: int | None = None,
        journal: Journal | None = None,
        moments: Moments | None = None,
    ) -> None:
        self.rows = rows
        self.moments = Moments(rows.n_columns, rows.n_targets) if moments is None else moments
        self.forgetting = forgetting
        self.n_reads = 0 if moments is None else 1
        self.planned_reads = planned_reads
        # The rows of small data: centred for BLAS, or unchanged for compiled loops.
        self._held: Float64Array | None = None
        self._block: Block | None = None
        self._journal = journal

    def read_moments(self) -> Self:
        """Make the first read."""
        if not self.rows.in_memory:
            if self._journal is not None:
                self.moments = self._journal.continued_moments(self.moments)
            self._add_read(self.moments, moments_of)
            return self
        self.n_reads = 1
        block = self.rows.as_one_block(self.forgetting, "read 1 of 1")
        if self.rows.compiled:
            self.moments, self._block = moments_of(block), block._replace(weight=block.weights)
        else:
            self.moments, self._held = centred_rows(block)
        return self

    @property
    def rounding(self) -> float:
        """Relative rounding error of a sum of products; where products are centred, means increase it."""
        may_be_sparse = not (self.rows.in_memory or self.rows.compiled)
        largest = self._centre[2] if may_be_sparse else 0.0
        return ROUNDING * max(1.0, largest) if largest <= _LARGEST_SPARSE_MEAN else ROUNDING

    @property
    def variance_resolution(self) -> float:
        """Relative variance below which a direction cannot be distinguished from rounding errors."""
        # Scores are accurate to rounding errors, so variances to the squares of these.
        return self.rounding**2

    @cached_property
    def _centre(self) -> tuple[Float64Array, Float64Array, float]:
        """The means, their rounding errors, and the largest mean in standard deviations."""
        moments, mean = self.moments, self.moments.x_mean
        # Constant columns do not count.
        varying = moments.x_squares > 0
        deviation = np.sqrt(moments.x_squares[varying] / max(moments.weight, 1e-300))
        largest = float((np.abs(mean[varying]) / deviation).max(initial=0.0))
        # The mean is rounded to one number, which is slightly off far from zero.
        return mean, (moments.x_origin - mean) + moments.x_offset, largest

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Sv and v'Sv from one read of the data."""
        if self._held is not None:
            scores = self._held.dot(v)
            return scores.dot(self._held), float(scores.dot(scores))
        sums = self._read(Sums(v, np.zeros(len(v))), _block_action)
        _, error, largest = self._centre
        if largest <= _LARGEST_DENSE_MEAN:
            # The correction is smaller than the square of a rounding error.
            return sums.action, sums.square
        weight, shift = self.moments.weight, float(error @ v)
        return sums.action - weight * shift * error, sums.square - weight * shift**2

    def apply_block(self, V: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return SV and V'SV of several vectors, stored as rows, from one read of the data."""
        sums = self._read(BlockSums(V, np.zeros_like(V), np.zeros((len(V), len(V)))), _block_products)
        error, weight = self._centre[1], self.moments.weight
        shift = V @ error
        return sums.action - weight * np.outer(shift, error), sums.square - weight * np.outer(shift, shift)

    def _read(self, sums: Sums, work: Callable[..., Sums]) -> Sums:
        """Return the sums of one read, without the correction for the mean."""
        mean, _, largest = self._centre
        if self._block is not None:
            return work(mean, sums.v, largest, self._block)
        if self._journal is not None:
            sums = self._journal.continued_sums(sums, self.n_reads)
        self._add_read(sums, partial(work, mean, sums.v, largest))
        return sums

    def known(self) -> Moments:
        """Return the moments, together with the Gram matrix if there are few rows and features."""
        rows = self._held
        self.moments.forgetting = self.forgetting
        if rows is None or not rows.shape[1] <= rows.shape[0] <= _LITTLE_WORK / rows.shape[1] ** 2:
            return self.moments
        return Gram.of(self.moments, rows)

    def _add_read(self, total: Moments | Sums, work: Callable[[Block], Any]) -> None:
        """Add to a total the results of ``work`` for the blocks of one read that are not in the journal yet."""
        journal = Journal(n_reads=self.n_reads) if self._journal is None else self._journal
        self.n_reads += 1
        if self.n_reads <= journal.n_reads:
            return
        label = f"read {self.n_reads}" + (f" of {self.planned_reads}" if self.planned_reads else "")
        for part, n_rows in self.rows.parts(work, self.forgetting, label, journal.n_rows):
            total.merge(part)
            journal.n_rows += n_rows
            if journal.tell is not None:
                journal.tell(n_rows)
        journal.n_reads, journal.n_rows = self.n_reads, 0


def _block_action(mean: Float64Array, v: Float64Array, relative_mean: float, block: Block) -> Sums:
    """Return the contribution of a block to Sv and v'Sv; ``relative_mean`` is the largest mean in standard deviations.

    If means are small, the products are centred instead of the rows: sparse rows stay sparse, and dense ones are
    not copied.
    """
    weight = block.weights
    scores, action = np.empty(block.n_rows), np.zeros(len(v))
    if block.compiled:
        add = add_gram_action_as_is if relative_mean <= _LARGEST_DENSE_MEAN else add_gram_action
        for rows, X in readable(block.X):
            add(X, mean, v, weight[rows], scores[rows], action)
    elif sparse.issparse(block.X) and relative_mean <= _LARGEST_SPARSE_MEAN:
        scores = block.X @ v - mean @ v
        action = block.X.T @ (scores * weight) - mean * np.dot(scores, weight)
    else:
        for rows, tile in dense_tiles(block.X, mean):
            np.dot(tile, v, out=scores[rows])
            action += np.dot(scores[rows] * weight[rows], tile)
    weighted = scores if block.weight is None else scores * weight
    return Sums(v, action, float(np.dot(weighted, scores)))


def _block_products(mean: Float64Array, V: Float64Array, relative_mean: float, block: Block) -> BlockSums:
    """Return the same contribution for several vectors, the rows of V."""
    sums = BlockSums(V, np.zeros_like(V), np.zeros((len(V), len(V))))
    weight = block.weights[:, None]
    if sparse.issparse(block.X) and relative_mean <= _LARGEST_SPARSE_MEAN:
        scores = block.X @ V.T - V @ mean
        sums.action += (block.X.T @ (scores * weight)).T - np.outer((scores * weight).sum(axis=0), mean)
        sums.square += (scores * weight).T @ scores
        return sums
    for rows, tile in dense_tiles(block.X, mean):
        scores = tile @ V.T
        weighted = scores * weight[rows]
        sums.action += weighted.T @ tile
        sums.square += weighted.T @ scores
    return sums


@compiled
def add_gram_action(
    X: FloatArray,
    mean: Float64Array,
    v: Float64Array,
    weight: Float64Array,
    scores: Float64Array,
    action: Float64Array,
) -> None:
    """Set ``scores`` to t = (X - mean) v and add to ``action`` (X - mean)'(weight * t)."""
    n, m = X.shape
    whole = n - n % 8
    for i in range(0, whole, 8):
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            s, r = mean[j], v[j]
            a += (X[i, j] - s) * r
            b += (X[i + 1, j] - s) * r
            c += (X[i + 2, j] - s) * r
            d += (X[i + 3, j] - s) * r
            e += (X[i + 4, j] - s) * r
            f += (X[i + 5, j] - s) * r
            g += (X[i + 6, j] - s) * r
            h += (X[i + 7, j] - s) * r
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = a, b, c, d
        scores[i + 4], scores[i + 5], scores[i + 6], scores[i + 7] = e, f, g, h
        a, b, c, d = a * weight[i], b * weight[i + 1], c * weight[i + 2], d * weight[i + 3]
        e, f, g, h = e * weight[i + 4], f * weight[i + 5], g * weight[i + 6], h * weight[i + 7]
        for j in range(m):
            s = mean[j]
            first = (a * (X[i, j] - s) + b * (X[i + 1, j] - s)) + (c * (X[i + 2, j] - s) + d * (X[i + 3, j] - s))
            last = (e * (X[i + 4, j] - s) + f * (X[i + 5, j] - s)) + (g * (X[i + 6, j] - s) + h * (X[i + 7, j] - s))
            action[j] += first + last
    for i in range(whole, n):
        a = 0.0
        for j in range(m):
            a += (X[i, j] - mean[j]) * v[j]
        scores[i] = a
        for j in range(m):
            action[j] += a * weight[i] * (X[i, j] - mean[j])


@compiled
def add_gram_action_as_is(
    X: FloatArray,
    mean: Float64Array,
    v: Float64Array,
    weight: Float64Array,
    scores: Float64Array,
    action: Float64Array,
) -> None:
    """Do the same, but centre the products instead of X."""
    n, m = X.shape
    whole = n - n % 8
    offset = 0.0
    for j in range(m):
        offset += mean[j] * v[j]
    for i in range(0, whole, 8):
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            r = v[j]
            a += X[i, j] * r
            b += X[i + 1, j] * r
            c += X[i + 2, j] * r
            d += X[i + 3, j] * r
            e += X[i + 4, j] * r
            f += X[i + 5, j] * r
            g += X[i + 6, j] * r
            h += X[i + 7, j] * r
        a, b, c, d = a - offset, b - offset, c - offset, d - offset
        e, f, g, h = e - offset, f - offset, g - offset, h - offset
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = a, b, c, d
        scores[i + 4], scores[i + 5], scores[i + 6], scores[i + 7] = e, f, g, h
        a, b, c, d = a * weight[i], b * weight[i + 1], c * weight[i + 2], d * weight[i + 3]
        e, f, g, h = e * weight[i + 4], f * weight[i + 5], g * weight[i + 6], h * weight[i + 7]
        for j in range(m):
            first = (a * X[i, j] + b * X[i + 1, j]) + (c * X[i + 2, j] + d * X[i + 3, j])
            last = (e * X[i + 4, j] + f * X[i + 5, j]) + (g * X[i + 6, j] + h * X[i + 7, j])
            action[j] += first + last
    for i in range(whole, n):
        a = -offset
        for j in range(m):
            a += X[i, j] * v[j]
        scores[i] = a
        for j in range(m):
            action[j] += a * weight[i] * X[i, j]
    total = 0.0
    for i in range(n):
        total += weight[i] * scores[i]
    for j in range(m):
        action[j] -= total * mean[j]
