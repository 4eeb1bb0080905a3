"""StreamingPipeline: scikit-learn's Pipeline for streams and for data larger than memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import wraps
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._core.tiles import SMALL_BYTES
from .._core.types import Array
from .._core.validation import changed_at_once
from ..data import DataError, Source, open_source
from ..distributed import OnWorkers
from ..rows import CollectionRows, is_collection, validate_source
from ..rows.collections import apply_lazily, fold_in_order
from ..rows.sources import takes_missing
from .steps import Learns, Treatment, are_equal, is_fitted, learn, ramp, require_parts


def _last_has(name: str) -> Callable[[Any], bool]:
    def has(pipeline: Any) -> bool:
        # Its AttributeError says why there is no such method.
        getattr(pipeline._final_estimator, name)
        return True

    return has


def _in_blocks(name: str) -> Any:
    """Return a method of scikit-learn's pipeline, extended to rows in blocks."""
    inherited = getattr(Pipeline, name)

    def is_there(pipeline: Any) -> bool:
        # Its AttributeError says why there is no such method.
        getattr(super(StreamingPipeline, pipeline), name)
        return True

    @available_if(is_there)
    @wraps(inherited)
    def method(self: StreamingPipeline, X: Any, *args: Any, **params: Any) -> Any:
        rows = self._as_blocks(X)
        if rows is None:
            return getattr(super(StreamingPipeline, self), name)(X, *args, **params)
        return getattr(self._final_estimator, name)(self._treated(rows), *args, **params)

    return method


class StreamingPipeline(Pipeline):
    """A pipeline for streams and for data larger than memory.

    It extends scikit-learn's :class:`~sklearn.pipeline.Pipeline`, with the same steps, parameters and checks, by

    - ``partial_fit``, and ``merge`` where the last step has it;
    - rows in blocks: sources (:func:`plstream.open_source`), arrays and memory maps of more than 32 MiB, and Dask
      collections pass through the steps block by block, in every method;
    - :func:`plstream.save`, ``Monitor``, ``DriftTracker``, reports, displays and ``export_onnx``, as for its last step;
    - a call of ``fit`` or ``partial_fit`` that fails changes no step.

    How a step learns from blocks depends on the step:

    - A step that processes one row at a time (SNV, derivatives, a ``FunctionTransformer``) learns nothing. The result
      equals that of the same pipeline in memory, for any blocks and every solver.
    - A step with ``partial_fit`` (``StandardScaler``), and chemotools' scatter corrections with the mean as reference
      (MSC, EMSC), learn in ``fit`` from one extra read per step. The result equals that in memory up to rounding. In
      ``partial_fit``, they learn from the new rows before transforming them: rows of earlier calls were transformed by
      steps that had seen less data, so the result depends on how rows are divided into calls.
    - Any other step can only be fitted to rows in memory. ``partial_fit`` does not update it.

    To stop a step from learning, wrap it in :class:`sklearn.frozen.FrozenEstimator`: ``partial_fit`` and ``merge`` are
    then exact.

    Parameters
    ----------
    steps : list of (str, estimator) tuples
        Names and estimators, the last of which is the model.
    transform_input : list of str, default=None
        As in scikit-learn, for rows in memory.
    memory : str or object with the joblib.Memory interface, default=None
        As in scikit-learn, for rows in memory.
    verbose : bool, default=False
        As in scikit-learn, for rows in memory.

    Attributes
    ----------
    named_steps : Bunch
        The steps by name.
    classes_ : ndarray of shape (n_classes,)
        Labels, if the last step has them.
    n_features_in_ : int
        Number of features of the first step.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if the first step has them.

    See Also
    --------
    sklearn.pipeline.Pipeline : The same for rows in memory.

    Notes
    -----
    Parameters of ``fit`` and ``partial_fit`` without the name of a step, such as ``sample_weight`` or ``classes``, are
    passed to the last step.

    A fit that reads the data several times keeps the transformed rows in a temporary file if space permits, as for
    formats that are slow to read.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import Normalizer
    >>> from plstream import IncrementalPLS, StreamingPipeline
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 2, size=(200, 10))
    >>> y = X[:, 0] / X[:, 1]
    >>> model = StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLS(n_components=3))]).fit(X, y)
    >>> stream = StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLS(n_components=3))])
    >>> for start in range(0, 200, 50):
    ...     stream = stream.partial_fit(X[start : start + 50], y[start : start + 50])
    >>> bool(np.allclose(stream.predict(X), model.predict(X)))
    True
    """

    # Number of training rows of the steps before the last.
    _n_learnt: int

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit all steps, one after the other, discarding earlier training.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), source or Dask collection
            The rows, as input of the first step.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            The target. None if X is a source, which provides it.
        **params : dict
            Parameters of the ``fit`` of steps, as ``step__parameter``; those without the name of a step are passed to
            the last. With metadata routing enabled, those that steps request.

        Returns
        -------
        self : StreamingPipeline
        """
        rows = None if params and not _is_lazy(X) else self._as_blocks(X, y)
        with changed_at_once(self) as (twin,):
            if rows is None:
                super(StreamingPipeline, twin).fit(X, y, **self._by_step(params))
                twin._n_learnt = 0 if _is_lazy(X) else _num_samples(X)
            else:
                twin._forget()
                twin._learn_blocks(rows, y)
                target = y if rows is X else None
                twin._final_estimator.fit(twin._treated(rows), target, **self._of_last(params, "fit"))
        return self

    @available_if(_last_has("partial_fit"))
    def partial_fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Update all steps with new rows, the model last. A call that fails changes nothing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            Their target. None if X is a source, which provides it.
        **params : dict
            Other parameters of the ``partial_fit`` of the last step, such as ``sample_weight`` or ``classes``. With
            metadata routing enabled, those that it requests by ``set_partial_fit_request``.

        Returns
        -------
        self : StreamingPipeline
        """
        params = self._of_last(params, "partial_fit")
        self._validate_params()
        self._validate_steps()
        with changed_at_once(self) as (twin,):
            twin._n_learnt = vars(self).get("_n_learnt", 0)
            if not _is_lazy(X):
                twin._learn_rows(X, y, params)
            elif isinstance(X, Source) and not X.rereadable and twin._learning:
                # All steps learn from each block when it is read.
                for block in X.blocks():
                    twin._learn_rows(*block, params)
            else:
                twin._learn_blocks(X, y)
                twin._final_estimator.partial_fit(twin._treated(X), y, **params)
        return self

    @available_if(_last_has("merge"))
    def merge(self, other: StreamingPipeline, **params: Any) -> Self:
        """Merge the last step of another pipeline into the last step of this one. The other pipeline is left unchanged.

        Parameters
        ----------
        other : StreamingPipeline
            A pipeline fitted to other rows. The steps before the last must be equal, including what they have learnt,
            because rows that were transformed differently cannot train one model.
        **params : dict
            Other parameters of the ``merge`` of the last step, such as ``later``.

        Returns
        -------
        self : StreamingPipeline
        """
        if not isinstance(other, StreamingPipeline):
            raise TypeError(f"Only another StreamingPipeline can be merged, not {type(other).__name__}.")
        if len(self._before) != len(other._before):
            raise ValueError(
                f"Only pipelines with the same steps can be merged, but they have {len(self)} and {len(other)} steps."
            )
        for (name, mine), (_, theirs) in zip(self._before, other._before, strict=True):
            if not are_equal(mine, theirs):
                raise ValueError(
                    f"Only pipelines with equal fitted steps can be merged, but step {name!r} differs: fit it once, "
                    "and put FrozenEstimator(step) in both pipelines."
                )
        with changed_at_once(self) as (twin,):
            twin._final_estimator.merge(other._final_estimator, **params)
            twin._n_learnt = vars(self).get("_n_learnt", 0) + vars(other).get("_n_learnt", 0)
        return self

    def _can_transform(self) -> bool:
        return bool(super()._can_transform())

    @available_if(_can_transform)
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps, and return the transformed rows.

        Parameters
        ----------
        X, y, **params
            See ``fit``.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_transformed_features)
            The rows transformed by the last step.
        """
        return self.fit(X, y, **params).transform(X)

    transform = _in_blocks("transform")
    predict = _in_blocks("predict")
    predict_proba = _in_blocks("predict_proba")
    predict_log_proba = _in_blocks("predict_log_proba")
    decision_function = _in_blocks("decision_function")
    score = _in_blocks("score")

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self._first.n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if known."""
        names: Array = self._first.feature_names_in_
        return names

    @property
    def _first(self) -> Any:
        """The first step that does not pass rows through."""
        return next(step for _, step in self.steps if hasattr(step, "fit"))

    @property
    def _before(self) -> list[tuple[str, Any]]:
        """The steps before the last, without those that pass rows through."""
        return [(name, step) for name, step in self.steps[:-1] if hasattr(step, "fit")]

    @property
    def _learning(self) -> bool:
        """Whether any step before the last learns from rows."""
        return any(Learns.of(step) in {Learns.IN_PARTS, Learns.MEAN} for _, step in self._before)

    def _by_step(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters of ``fit`` with the names of their steps."""
        if get_config()["enable_metadata_routing"]:
            return params
        last = self.steps[-1][0]
        return {name if "__" in name else f"{last}__{name}": value for name, value in params.items()}

    def get_metadata_routing(self) -> Any:
        """Return the requests of the steps, as in scikit-learn, and of the last step for ``partial_fit``.

        Returns
        -------
        routing : MetadataRouter
        """
        router = super().get_metadata_routing()
        for name, pair in router:
            if name == self.steps[-1][0]:
                pair.mapping.add(caller="partial_fit", callee="partial_fit")
        return router

    def _of_last(self, params: dict[str, Any], method: str) -> dict[str, Any]:
        """Return the parameters of a method of the last step; raise ValueError if there are others."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, method, **params)[self.steps[-1][0]]
            return dict(getattr(routed, method))
        prefix = f"{self.steps[-1][0]}__"
        for name in params:
            if "__" in name and not name.startswith(prefix):
                raise ValueError(
                    f"{name} is for a step that learns from rows in blocks, but such a step accepts no parameters."
                )
        return {name.removeprefix(prefix): value for name, value in params.items()}

    def _as_blocks(self, X: Any, y: Any = None) -> Any:
        """Return rows to be transformed in blocks, or None if they are transformed as a whole."""
        if not self._before:
            return None
        if _is_lazy(X):
            return X
        is_matrix = type(X) in {np.ndarray, np.memmap} and X.ndim == 2 and X.dtype.kind == "f"
        takes_sources = type(self._final_estimator).__module__.startswith("plstream.")
        return open_source(X, target=y) if is_matrix and takes_sources and 8 * X.size > SMALL_BYTES else None

    def _forget(self) -> None:
        """Reset the steps before the last to their unfitted state."""
        self._validate_params()
        self._validate_steps()
        for _, step in self._before:
            fresh = vars(clone(step)).copy()
            vars(step).clear()
            vars(step).update(fresh)
        self._n_learnt = 0

    def _learn_rows(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        """Update all steps with rows in memory."""
        rows = X
        for name, step in self._before:
            if not is_fitted(step) or Learns.of(step) in {Learns.IN_PARTS, Learns.MEAN}:
                require_parts(name, step)
                learn(step, rows, y, self._n_learnt)
            rows = step.transform(rows)
        self._final_estimator.partial_fit(rows, y, **params)
        self._n_learnt += _num_samples(X)

    def _learn_blocks(self, X: Any, y: Any) -> None:
        """Update the steps before the last with rows in blocks, one step after the other."""
        columns = _columns_of(X, y)
        columns.allow_missing = takes_missing(self)
        first = not (self._before and is_fitted(self._before[0][1]))
        if self._before and not first:
            validate_source(self, columns, reset=False)
        n_learnt = self._n_learnt
        sample = ramp(columns.n_columns)
        fitted: list[Any] = []
        for name, step in self._before:
            # Blocks are arrays.
            vars(step).pop("feature_names_in_", None)
            if Learns.of(step) in {Learns.IN_PARTS, Learns.MEAN}:
                self._n_learnt = n_learnt
                self._learn_step(name, step, X, Treatment.of(fitted))
            elif not is_fitted(step):
                require_parts(name, step)
                step.fit(sample)
            sample = Treatment.of([step])(sample)
            fitted.append(step)
        if fitted and columns.feature_names is not None:
            vars(fitted[0])["feature_names_in_"] = np.array(columns.feature_names, dtype=object)

    def _learn_step(self, name: str, step: Any, X: Any, before: Treatment) -> None:
        """Update one step with rows in blocks, transformed by the steps before it."""
        if isinstance(X, Source | OnWorkers):
            source = X.source if isinstance(X, OnWorkers) else X
            if not source.rereadable:
                raise DataError(
                    f"Step {name!r} has to be fitted before the model, but {source.name} can be read only once: use "
                    "partial_fit, or fit the step to other rows and put it in a FrozenEstimator."
                )
            for block, target in _treated_source(source, before).blocks():
                learn(step, block, target, self._n_learnt)
                self._n_learnt += len(block)
            return
        learnt, self._n_learnt = fold_in_order(X, (step, self._n_learnt), _Learner(before))
        vars(step).update(vars(learnt))

    def _treated(self, X: Any) -> Any:
        """Return rows in blocks, transformed by the steps before the last."""
        steps = [step for _, step in self._before]
        if not steps:
            return X
        if not all(map(is_fitted, steps)):
            check_is_fitted(self)
        treatment = Treatment.of(steps)
        if isinstance(X, OnWorkers):
            return OnWorkers(self._treated(X.source))
        if isinstance(X, Source):
            validate_source(self, X, reset=False)
            return _treated_source(X, treatment, self._names_out())
        return apply_lazily(self, X, treatment)

    def _names_out(self) -> list[str] | None:
        """Return the feature names of the last step, if the steps before it return frames."""
        config = getattr(self._before[-1][1], "_sklearn_output_config", {})
        if config.get("transform", get_config()["transform_output"]) not in {"pandas", "polars"}:
            return None
        return [str(name) for name in self[:-1].get_feature_names_out()]


def _is_lazy(X: Any) -> bool:
    return isinstance(X, Source) or is_collection(X)


def _columns_of(X: Any, y: Any) -> Any:
    """Return an object with the number and the names of the columns."""
    if isinstance(X, OnWorkers):
        return X.source
    return X if isinstance(X, Source) else CollectionRows(X, y)


def _treated_source(source: Source, treatment: Treatment, names: Any = None) -> Source:
    if not treatment.steps:
        return source
    return source.treated(treatment, treatment(ramp(source.n_columns, source.dtype)), names)


@dataclass(frozen=True)
class _Learner:
    """Updates a copy of a step on the workers, one block after another."""

    before: Treatment

    def __call__(self, learnt: tuple[Any, int], block: Any) -> tuple[Any, int]:
        step, n_rows = deepcopy(learnt[0]), learnt[1]
        if not len(block):
            return learnt
        learn(step, self.before(np.asarray(block)), None, n_rows)
        return step, n_rows + len(block)
