"""Rows of a source, read once or several times, and functions applied to rows of any kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from .._core.errors import DataError, NonFiniteError
from .._core.progress import track
from .._core.tiles import SMALL_BYTES
from .._core.types import Array, Float64Array, Rows
from .._core.urls import shown
from .._core.validation import validate_rows
from .._core.warnings import warn_user
from ..data import Source, open_source
from ..data.objects import is_frame, is_table
from ..data.reading import NoRoomError, Parts, temporary_copy
from .blocks import ArrayRows, Block, Part, TrainingRows
from .collections import CollectionRows, apply_lazily, is_collection

Numbers: TypeAlias = Callable[[Array], Float64Array]


class SourceRows(TrainingRows):
    """The training rows of a source.

    ``numbers`` encodes y as numbers with one column per response; by default there is no y. For labels, ``n_classes``
    and ``class_weight`` are those of :class:`ArrayRows`. Rows of weight zero are skipped, unless weights are ignored
    (``weighted=False``).
    """

    # A source plans memory for eight blocks, including those being read.
    _under_way = 5

    def __init__(
        self,
        source: Source,
        numbers: Numbers | None = None,
        *,
        n_classes: int = 0,
        class_weight: Float64Array | None = None,
        weighted: bool = True,
    ) -> None:
        self.source = source
        self.weighted = weighted and "weight" in source.roles
        self.n_columns = source.n_columns
        self.rereadable = source.rereadable
        self.set_n_rows(source.n_rows)
        self.learn(numbers, n_classes, class_weight)
        self._blocks: Iterator[Parts] | None = None
        self._first: Parts | None = None

    def learn(self, numbers: Numbers | None, n_classes: int = 0, class_weight: Float64Array | None = None) -> None:
        """Set the encoding of y, which may depend on the first block."""
        self.numbers, self.n_classes, self.class_weight = numbers, n_classes, class_weight
        self.n_targets = n_classes or self.source.n_targets

    def set_n_rows(self, n_rows: int | None) -> None:
        """Set the number of rows, which determines whether they are held in memory."""
        self.n_rows = n_rows
        self.in_memory = n_rows is not None and 8 * n_rows * self.n_columns <= SMALL_BYTES
        self.compiled = not self.in_memory

    @property
    def first_y(self) -> Array | None:
        """The y of the first block, which remains to be read."""
        if self._first is None:
            self._blocks = self.source.records()
            self._first = self._require_block(next(self._blocks, None))
        return self._first[1]

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Read the rows, starting at any row."""
        first, self._first = self._first, None
        if first is None or self._blocks is None:
            self._blocks = self.source.records(start)
        n_rows, n_skipped = start, 0
        for record in chain([] if first is None else [first], self._blocks):
            block = Block(*self.numeric(record, n_rows), self.compiled, self.n_classes)
            n_rows += block.n_rows
            block = block.present()
            n_skipped += block.n_skipped
            if block.n_rows:
                block = block._replace(n_skipped=n_skipped)
                yield block if self.class_weight is None else block.weighted(self.class_weight)
                n_skipped = 0
        if not n_rows:
            self._require_block(None)

    def numeric(self, record: Parts, row: int) -> tuple[Array, Float64Array, Float64Array | None]:
        """Return X, y as numbers, and the weights of a block that begins at a row."""
        X, y, *others = record
        assert X is not None
        weight = others[self.source.roles.index("weight")] if self.weighted else None
        return X, self._numbers(y, len(X), row), None if weight is None else self._checked_weight(weight, row)

    def n_rows_from(self, start: int) -> int:
        """Return the number of rows of nonzero weight from ``start`` on, reading only the weights."""
        if not self.weighted or not start:
            return super().n_rows_from(start)
        n_before = 0
        for weight in self.source.column("weight"):
            n_before += int(np.count_nonzero(weight[:start]))
            start = max(0, start - len(weight))
        return super().n_rows_from(n_before)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Close it now rather than when an error that refers to blocks read ahead is garbage collected.
        if isinstance(self._blocks, Generator):
            self._blocks.close()

    def _numbers(self, y: Array | None, n: int, row: int) -> Float64Array:
        if y is None or self.numbers is None:
            return np.empty((n, 0))
        try:
            return self.numbers(y)
        except ValueError as error:
            raise DataError(f"In {self.source.name}, from row {self.source.first_row + row} on: {error}") from None

    def _checked_weight(self, weight: Array, row: int) -> Float64Array:
        if not (valid := weight >= 0).all():
            at = int(np.argmin(valid))
            # Of a model with missing='model', for which readers return missing values as NaN.
            problem = "missing" if np.isnan(weight[at]) else "negative"
            at += self.source.first_row + row
            raise DataError(f"In {self.source.name}, row {at}, the weight is {problem}: it must be zero or more.")
        return np.asarray(weight, dtype=np.float64)

    def _require_block(self, block: Parts | None) -> Parts:
        if block is None or block[0] is None or not len(block[0]):
            raise self.source.no_rows()
        return block


class _MappedRows(ArrayRows):
    """All rows of a source as lazily read arrays: its own files, or a copy of them."""

    def __init__(
        self,
        source: Source,
        X: Array,
        Y: Array,
        weight: Float64Array | None = None,
        *,
        is_copy: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(X, Y, weight, **options)
        self.source = source
        self.is_copy = is_copy

    def parts(
        self, work: Callable[[Block], Part], forgetting: float, label: str, start: int = 0
    ) -> Iterator[tuple[Part, int]]:
        """Check for changed files before every block, in the thread that processes it."""
        if self.is_copy:
            return super().parts(work, forgetting, label, start)

        def checked_work(block: Block) -> Part:
            self.source.require_unchanged()
            return work(block)

        return super().parts(checked_work, forgetting, label, start)

    def require_finite(self) -> None:
        """Raise ValueError for numbers that are not finite, naming the file."""
        self.source.require_finite()


@contextmanager
def reread(source: Source, numbers: Numbers, batch_size: int | None, **labels: Any) -> Iterator[TrainingRows]:
    """Yield the rows of a source, to be read several times: in place, or from a temporary copy if that is faster.

    For ``numbers`` and ``labels`` see :class:`SourceRows`.
    """
    require_rereadable(source)
    batch_size = source.batch_size or batch_size
    mapped = source.mapped()
    if mapped is not None:
        source.require_unchanged()
        X, y = mapped
        assert y is not None
        numbers(y[:1])
        yield _MappedRows(source, X, y.reshape(len(y), -1), numbers=numbers, batch_size=batch_size, **labels)
        source.require_unchanged()
        return
    with SourceRows(source, numbers, **labels) as rows, ExitStack() as files:
        columns = _copied(rows, files) if source.slow else None
        if columns is not None:
            # The same blocks as without a copy: results must not depend on free disk space.
            yield _MappedRows(source, *columns, is_copy=True, batch_size=source.block_rows, **labels)
            return
        rows.set_n_rows(source.n_weighted() if "weight" in source.roles else source.count())
        yield rows


def require_rereadable(source: Source) -> None:
    """Raise DataError for a source that cannot be read several times."""
    if not source.rereadable:
        raise DataError(
            f"{source.name} can be read only once, but solver='multipass' reads it several times: use solver='gram' "
            "or 'sketch', or partial_fit."
        )


def _copied(rows: SourceRows, files: ExitStack) -> tuple[Array, ...] | None:
    """Return a copy of the rows in temporary files, or None if disk space is insufficient."""
    source = rows.source
    n_bytes = source.n_columns * source.dtype.itemsize * (source.n_rows or 0)
    label = "copied to a temporary file, as it is slow to read"

    def blocks() -> Iterator[tuple[Array, ...]]:
        row = 0
        with closing(track(source.records(), label, source.n_rows, lambda record: len(record[0]))) as records:
            for record in records:
                yield tuple(column for column in rows.numeric(record, row) if column is not None)
                row += len(record[0])
        if not row:
            raise source.no_rows()

    try:
        return files.enter_context(temporary_copy(blocks(), n_bytes))
    except NoRoomError:
        return None


def opened_data(X: Any, y: Any) -> tuple[Any, Any]:
    """Return X and y unchanged, or a source for data to be read in blocks: Arrow tables and iterators."""
    if isinstance(X, np.ndarray):
        return X, y
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"X is a path, {shown(X)}: open it first, for example with plstream.open_source({shown(X)!r}, target=...)."
        )
    if isinstance(X, Iterator) or (is_table(X) and not is_frame(X)):
        return open_source(X, target=y), None
    return X, y


def require_target(source: Source, name: str, y: Any, sample_weight: Any = None) -> None:
    """Raise ValueError unless the source has a target, and nothing else is given."""
    require_alone(y, sample_weight)
    if not source.n_targets:
        raise ValueError(f"{name} requires y to be passed, and {source.name} has no target: open it with target=.")


def require_alone(y: Any, sample_weight: Any = None) -> None:
    """Raise ValueError if y or weights are given in addition to a source."""
    if y is not None:
        raise ValueError("y cannot be passed with a source: pass target= to open_source.")
    if sample_weight is not None:
        raise ValueError("sample_weight cannot be passed with a source: pass weight= to open_source.")


def takes_missing(model: Any) -> bool:
    """Return whether a model, or the last step of a pipeline, completes missing values."""
    return getattr(getattr(model, "_final_estimator", model), "missing", "error") != "error"


def validate_source(estimator: BaseEstimator, columns: Source | CollectionRows, *, reset: bool) -> None:
    """Check or set the number and the names of features, as scikit-learn does for arrays and frames."""
    model: Any = estimator
    columns.allow_missing = takes_missing(model)
    names = None if columns.feature_names is None else np.array(columns.feature_names, dtype=object)
    if reset:
        model.n_features_in_ = columns.n_columns
        for name in ("feature_names_in_", "feature_axis_"):
            vars(model).pop(name, None)
        if names is not None:
            model.feature_names_in_ = names
        return
    if columns.n_columns != model.n_features_in_:
        raise ValueError(
            f"X has {columns.n_columns} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    known = getattr(model, "feature_names_in_", None)
    if known is None or names is None:
        if known is not None:
            warn_user("The source has no feature names, but the model was fitted with feature names.")
        elif names is not None:
            warn_user("The source has feature names, but the model was fitted without feature names.")
    elif not np.array_equal(names, known):
        at = int(np.argmax(names != known))
        raise ValueError(
            f"The feature names should match those that were passed during fit: feature {at} is {names[at]!r}, but "
            f"was {known[at]!r}."
        )


def by_blocks(estimator: BaseEstimator, X: Any, function: Callable[[Rows], Array], *, weighted: bool = False) -> Array:
    """Apply a function to the rows of X: an array as a whole, a source in blocks, a Dask collection lazily.

    If ``weighted``, the rows of a source that have a weight of zero are left out.
    """
    X, _ = opened_data(X, None)
    if is_collection(X):
        return apply_lazily(estimator, X, function)
    try:
        if not isinstance(X, Source):
            return function(validate_rows(estimator, X, reset=False))
        validate_source(estimator, X, reset=False)
        with SourceRows(X, weighted=weighted) as rows:
            found = [function(block.X) for block in rows.tracked_blocks("one read")]
    except NonFiniteError as error:
        raise error.of_model(estimator) from None
    for column, n_rows in X.unseen_levels.items():
        warn_user(
            f"{n_rows} rows have a level of {column!r} that the model does not know: all features of {column!r} are "
            "zero in these rows."
        )
    return np.concatenate(found)
