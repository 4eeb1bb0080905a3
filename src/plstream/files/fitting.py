"""``fit_source``: resumable fits."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

import plstream

from .._core.progress import Step, also_listening, listening, track
from .._core.types import Array
from .._core.validation import changed_at_once
from ..data import Source
from ..estimators.settings import Settings
from ..rows.sources import takes_missing
from ..selection import VIPSelector
from ..solvers import Journal, JournalError
from .checkpoints import Checkpoint, CheckpointError, CheckpointFolder
from .modelfile import require_ours

Model = TypeVar("Model")

# Set by ``set_output``, which may differ between calls.
_OUTPUT = "_sklearn_output_config"


class Stopped(Exception):  # noqa: N818
    """A fit was stopped on request, after a last checkpoint if it has a folder. The model is unchanged."""


def fit_source(
    model: Model,
    source: Source,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every_rows: int | None = None,
    every_seconds: float | None = 30.0,
    one_pass: bool = False,
    classes: Any = None,
    on_block: Callable[[Any, Array, Array | None], None] | None = None,
    on_fitted: Callable[[Any], None] | None = None,
    on_stopped: Callable[[Any], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Model:
    """Fit a model to a source, with checkpoints: if the process is killed, the same call resumes the fit.

    The result is bit-identical to ``model.fit(source)``, with and without checkpoints, no matter how often the fit
    was killed; for models with cross-validation and a checkpoint, to ``model.partial_fit(source)``: see Notes. If it
    fails or is stopped, the model is unchanged.

    Parameters
    ----------
    model : estimator
        Any estimator of this library that learns from sources. Earlier training is discarded.
    source : Source
        The rows, see :func:`plstream.open_source`.
    checkpoint : str or path-like, default=None
        A folder for this fit alone, created if necessary. When the fit is complete its checkpoints are removed, and
        the folder is kept. By default there are no checkpoints.
    every_rows : int, default=None
        Number of rows between checkpoints, which are written at the end of a block.
    every_seconds : float, default=30.0
        Seconds between checkpoints, whichever comes first; more for large models, so that writing takes at most a tenth
        of the time. None for no time limit.
    one_pass : bool, default=False
        Whether a model that would read the data several times reads it once, as in ``partial_fit``.
    classes : array-like of shape (n_classes,), default=None
        All labels that will occur, for models that learn labels. By default those of the source, or of its first
        block if it can be read only once.
    on_block : callable, default=None
        Called with the model, X and y before a one-pass model learns a block of rows, for example to test it on them.
        For the first block, the model is not fitted yet.
    on_fitted : callable, default=None
        Called with the fitted model, a copy that will replace ``model``, before its checkpoints are removed: save it
        here, so that there is always a file to resume from.
    on_stopped : callable, default=None
        Called with the current model when the fit is stopped, if it learns in one pass.
    stop : callable, default=None
        Called after each block, and while a pipe is silent. If it returns true, a last checkpoint is written, and
        ``Stopped`` is raised.

    Returns
    -------
    model : estimator
        The model, fitted.

    Raises
    ------
    CheckpointError
        If the checkpoint belongs to other data or parameters, or the folder is in use by another process.
    Stopped
        If ``stop`` returned true.

    Notes
    -----
    The checkpoint of a model that learns in one pass contains the model as written by :func:`save`, and the number of
    rows. An exact fit of IncrementalPLS reads the data several times: its checkpoint contains the result of each read,
    and the sums of the current one. Data of up to 32 MiB is simply read again. Data that is slow to read is copied
    again to a temporary file. A pipe, which can be read only once, may either restart from its first row, in which case
    rows already learnt are skipped, or continue with new rows, which are all learnt; its first rows show which. Blocks
    of a pipe end when it is silent for a second, so results are equal up to rounding.

    With a checkpoint, models with cross-validation learn in one pass, with one state per fold, because only states can
    be kept in checkpoints. Without one, they are fitted as by ``fit``.

    If a checkpoint cannot be written, for example because the disk is full, a warning is issued and the fit continues;
    the previous checkpoint is kept. OSError is raised only if the last one before ``Stopped`` cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream import CIPLS, open_source
    >>> from plstream.files import Stopped, fit_source
    >>> X = np.random.default_rng(0).normal(size=(1000, 40))
    >>> source = open_source(X, target=X[:, 0] - X[:, 1], batch_size=100)
    >>> answers = iter([False, False, True])
    >>> with TemporaryDirectory() as folder:
    ...     try:
    ...         fit_source(CIPLS(), source, checkpoint=folder, stop=lambda: next(answers))
    ...     except Stopped as stopped:
    ...         print(stopped)
    ...     model = fit_source(CIPLS(), source, checkpoint=folder)
    The fit was stopped: repeat the call to resume from its last checkpoint.
    >>> bool(np.array_equal(model.x_weights_, CIPLS().fit(source).x_weights_))
    True
    """
    if isinstance(model, Pipeline):
        raise TypeError(
            "fit_source does not support pipelines: call fit or partial_fit of the pipeline, without checkpoints."
        )
    require_ours(model, "fitted")
    if not isinstance(source, Source):
        raise TypeError(
            f"fit_source requires a source returned by plstream.open_source, not a {type(source).__name__}."
        )
    if hasattr(model, "n_epochs") and cast("Any", model)._n_passes(source) > 1:
        raise ValueError("fit_source reads the data only once for this model: call its fit, or set n_epochs=1.")
    folder = None if checkpoint is None else CheckpointFolder(checkpoint, every_rows, every_seconds)
    with changed_at_once(model) as (twin,), nullcontext() if folder is None else folder.locked():
        learner = _learner_of(twin)
        source.allow_missing = getattr(learner, "missing", "error") != "error"
        if learner is None:
            cast("Any", twin).fit(source)
        else:
            fit = _Fit(learner, source, folder, one_pass=one_pass, classes=classes, on_block=on_block)
            fit.run(stop, on_stopped)
        if isinstance(twin, VIPSelector) and learner is not None:
            twin._trained = learner
        if on_fitted is not None:
            on_fitted(twin)
        if folder is not None:
            folder.remove()
    return model


def _learner_of(model: Any) -> Any:
    """Return the estimator to train: the model, a new one for a selector, or None if the selector has a fitted one."""
    model._validate_params()
    if isinstance(model, VIPSelector):
        if model.prefit or isinstance(model.estimator, FrozenEstimator):
            return None
        inner = model._fresh_model()
        require_ours(inner, "fitted to a source")
        inner._validate_params()
        return inner
    if not hasattr(model, "partial_fit"):
        raise TypeError(f"{type(model).__name__} requires all rows in memory: pass them to its fit.")
    return model


class _Fit:
    """A fit in progress."""

    def __init__(
        self,
        model: Any,
        source: Source,
        folder: CheckpointFolder | None,
        *,
        one_pass: bool,
        classes: Any,
        on_block: Callable[[Any, Array, Array | None], None] | None,
    ) -> None:
        if classes is not None and not (hasattr(model, "target") or is_classifier(model)):
            raise ValueError(f"{type(model).__name__} does not learn labels: leave out classes.")
        self.model = model
        self.source = source
        self.folder = folder
        self.on_block = on_block
        self.targets: dict[str, Any] = {} if classes is None else {"classes": classes}
        rereads = _is_pls(model) and model.solver not in {"gram", "sketch"} and not one_pass
        has_journal = rereads and not hasattr(model, "cv")
        self.is_exact = has_journal or (rereads and source.rereadable and folder is None)
        self.reached = Checkpoint(clone(model), journal=Journal() if has_journal else None)
        """The progress of the fit."""

    def run(self, stop: Callable[[], bool] | None, on_stopped: Callable[[Any], None] | None) -> None:
        """Fit the model, resuming from the last checkpoint if there is one; write one more if the fit is stopped."""

        def ask(_step: Step) -> None:
            if stop is not None and stop():
                then = "." if self.folder is None else ": repeat the call to resume from its last checkpoint."
                raise Stopped(f"The fit was stopped{then}")

        try:
            with nullcontext() if stop is None else also_listening(ask):
                if self.folder is not None:
                    self.reached = self._resumed(self.folder)
                if self.is_exact:
                    self._fit_exactly()
                else:
                    self._learn()
        except Stopped:
            if self.folder is not None and self.folder.is_behind:
                self.folder.write(self.reached)
            if on_stopped is not None and self.reached.n_rows:
                on_stopped(self.reached.model)
            raise

    def _resumed(self, folder: CheckpointFolder) -> Checkpoint:
        """Return the last checkpoint of this fit, or its initial one."""
        _require_nothing_else(self.model)
        if folder.every_rows is not None and not self.source.rereadable:
            self.source.limit_rows(folder.every_rows)
        fresh = replace(
            self.reached,
            source=self.source.fingerprint(),
            beginning=self.source.beginning(),
            classes=np.asarray(self.targets["classes"]) if self.targets else None,
            version=plstream.__version__,
        )
        all_count = "weight" not in self.source.roles and not takes_missing(self.model)
        found = folder.resume(fresh, self.source.n_rows, all_count=all_count)
        if found.beginning == fresh.beginning:
            return found
        # The pipe continues instead of restarting: all rows are new.
        return replace(found, beginning=fresh.beginning, n_rows_before=found.n_rows)

    def _learn(self) -> None:
        """Learn from one block after another."""
        model, source, reached = self.model, self.source, self.reached
        _forget(model)
        if reached.model is not None:
            learnt = vars(reached.model)
            learnt.pop(_OUTPUT, None)
            vars(model).update(learnt)
        reached.model = model
        if _is_pls(model):
            Settings.of(model).require_rows(source.n_rows, source.n_columns)
        row = reached.n_rows - reached.n_rows_before
        n_rows = None if source.n_rows is None else source.n_rows - row
        records = track(source.records(row), "read 1 of 1", n_rows, lambda record: len(record[0]))
        with closing(records):
            for record in records:
                X, y = record[:2]
                if self.on_block is not None:
                    self.on_block(model, X, y)
                with listening(None):
                    model.partial_fit(source.part(record, row), **self.targets)
                row += len(X)
                reached.n_rows += len(X)
                self._write_if_due(len(X))
        if not reached.n_rows:
            raise source.no_rows()
        if _is_pls(model):
            Settings.of(model).require_rows(reached.n_rows, source.n_columns)
        model._solution()

    def _fit_exactly(self) -> None:
        """Read the data as often as necessary."""
        journal, journals = self.reached.journal, {}
        if journal is not None:
            journal.tell = self._write_if_due
            journals["journal"] = journal
        try:
            self.model._fit(self.source, **journals, **self.targets)
        except JournalError:
            assert self.folder is not None
            raise CheckpointError(
                f"The checkpoint in {str(self.folder.folder)!r} was written with a processor or libraries that round "
                "differently: continue with those, or delete the folder to start over."
            ) from None

    def _write_if_due(self, n_rows: int) -> None:
        """Write a checkpoint if it is due, after more rows."""
        if self.folder is not None and self.folder.is_due(n_rows):
            self.folder.try_to_write(self.reached)


def _is_pls(model: Any) -> bool:
    """Return whether a model keeps a state described by ``Settings``."""
    return hasattr(model, "memory_usage")


def _forget(model: Any) -> None:
    """Reset a model to unfitted, keeping attributes that are not its own."""
    for name in {*vars(model)} - {*vars(clone(model))}:
        if _is_ours(name):
            delattr(model, name)


def _is_ours(name: str) -> bool:
    return name.startswith("_") or name.endswith("_")


def _require_nothing_else(model: Any) -> None:
    """Raise ValueError if a model has attributes that a checkpoint cannot hold."""
    for name in {*vars(model)} - {*vars(clone(model))}:
        if not _is_ours(name):
            raise ValueError(f"The model has {name!r}, which a checkpoint cannot hold: delete that attribute.")
