"""Methods by their names on the command line: their options, and the memory of a fit."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sklearn.base import ClassifierMixin, clone, is_classifier

import plstream

from .._core.memory import format_bytes, require_memory
from .._core.tiles import SMALL_BYTES
from ..data import Source
from ..estimators import IncrementalPLSClassifierCV, IncrementalPLSCV
from ..estimators.settings import Settings
from ..online import IncrementalLDA
from ..online.scatter import BLOCK_ROWS
from . import errors
from .options import Method

if TYPE_CHECKING:
    from .fit import Parameters, Validation

_METHODS: dict[Method, Any] = {method: getattr(plstream, method.name) for method in Method}
# Methods whose number of components cross-validation can choose.
_VALIDATED: dict[Method, Any] = {
    Method.IncrementalPLS: IncrementalPLSCV,
    Method.IncrementalPLSClassifier: IncrementalPLSClassifierCV,
}
# The library's default, or fewer if there are fewer features.
_MOST_TRIED = 10
_LEAST_BLOCKS = 8


def require_options(method: Method, **given: Any) -> None:
    """Raise ValueError for an option that is not a parameter of the method."""
    for name, value in given.items():
        if value is not None and not _has_option(method, name):
            those = ", ".join(one for one in _METHODS if _has_option(one, name))
            raise ValueError(f"--{name.replace('_', '-')} is not an option of --method {method}, only of {those}.")


def _has_option(method: Method, name: str) -> bool:
    model = _METHODS[method]
    parameters = model._get_param_names()
    if name == "classes":
        return "target" in parameters or issubclass(model, ClassifierMixin)
    return ("random_state" if name == "seed" else name) in parameters


def new_model(method: Method, *, seed: int | None = None, **parameters: Any) -> Any:
    """Return a model of the method; None stands for the default of a parameter, and for a seed of 0."""
    if _has_option(method, "seed"):
        parameters["random_state"] = seed or 0
    return _METHODS[method](**{name: value for name, value in parameters.items() if value is not None})


def model_for(
    method: Method, n_columns: int, n_components: int | None, parameters: Parameters, validation: Validation | None
) -> Any:
    """Return an unfitted model; with ``validation``, it chooses its number of components by cross-validation."""
    missing = None if parameters.missing is None else parameters.missing.value
    own = "model" if method in _VALIDATED else "mean"
    if missing not in {None, "error", own}:
        raise ValueError(f"--method {method} supports only --missing {own}, not {missing}.")
    given = asdict(parameters) | {"solver": None if parameters.sketch_size is None else "sketch", "missing": missing}
    if validation is None:
        return new_model(method, n_components=n_components, **given)
    if method not in _VALIDATED:
        raise ValueError(f"-c auto is not supported by --method {method}, only by {', '.join(_VALIDATED)}.")
    if parameters.forgetting is not None:
        raise ValueError("--forgetting is not supported with -c auto, which weighs rows equally: leave one out.")
    most = min(_MOST_TRIED, n_columns) if validation.max_components is None else validation.max_components
    given |= {"cv": validation.folds, "rule": None if validation.rule is None else validation.rule.value}
    unused = {"forgetting", "seed", "read_tol", "max_reads"}
    chosen = {name: value for name, value in given.items() if value is not None and name not in unused}
    return _VALIDATED[method](most, **chosen)


def reads_again(method: Method) -> bool:
    """Return whether the method can read the data several times."""
    return hasattr(_METHODS[method], "memory_usage")


def plan_memory(model: Any, source: Source, *, one_pass: bool, classes: Any, memory: int | None) -> None:
    """Choose blocks that fit the memory limit, and print the memory to be used; raise an error if nothing fits.

    Without a limit, only the model must fit into the memory of the machine.
    """
    learns_labels = hasattr(model, "target") or is_classifier(model)
    if memory is not None and classes is None and learns_labels and source.rereadable:
        # One model per label.
        labels = source.labels()
        classes = labels if labels.dtype.kind in "biuUS" else None
    state = state_bytes(model, source, one_pass=one_pass, classes=classes)
    if memory is None:
        require_memory(state, f"A {type(model).__name__} of {source.n_columns:,} features")
        return
    least = _LEAST_BLOCKS * source.n_columns * source.dtype.itemsize
    if state + least > memory:
        advice = _memory_advice(model, source, memory - least, one_pass=one_pass, classes=classes, needed=state + least)
        raise ValueError(
            f"{format_bytes(memory)} of memory is not enough, because the model takes {format_bytes(state)} and "
            f"blocks of rows at least {format_bytes(least)}: {advice}."
        )
    source.limit(memory - state)
    errors.tell(
        f"memory: {format_bytes(state)} for the model and {format_bytes(source.bytes_under_way)} for blocks of "
        f"{source.block_rows:,} rows, at most, of {format_bytes(memory)}"
    )


def state_bytes(model: Any, source: Source, *, one_pass: bool, classes: Any) -> int:
    """Return an upper bound on the memory of a model during training, in bytes."""
    m, q = source.n_columns, max(1, source.n_targets, 0 if classes is None else len(classes))
    if hasattr(model, "memory_usage"):
        if one_pass:
            return int(model.memory_usage(m, q))
        # Small data is copied as a whole; the number of rows of a text file is known only at the end.
        total = source.bytes_at_most if source.n_rows is None else 8 * m * source.n_rows
        total = SMALL_BYTES if total is None else total
        return int(model.memory_usage(m, q, method="fit")) + (2 * total if total <= SMALL_BYTES else 0)
    if isinstance(model, IncrementalLDA) and model._solver_for(m) == "scatter":
        # The scatter and a block of rows, their copies while they change, and the solution.
        return 8 * m * (8 * m + 4 * BLOCK_ROWS + 12 * q + 20)
    components = int(getattr(model, "n_pca_components", 0) + (model.n_components or q))
    # Directions, loadings and sums of each column of y: before and after a change, and the solution.
    return 8 * m * (12 * q * components + 20)


def _memory_advice(model: Any, source: Source, room: int, *, one_pass: bool, classes: Any, needed: int) -> str:
    """Return advice for an error message."""
    more = f"allow --memory {-(-needed // 10**6)}MB"
    if not (one_pass and hasattr(model, "memory_usage")):
        return more
    size = _largest_sketch(model, source, room, classes)
    ways = [] if size is None else [f"pass --one-pass --sketch-size {size}"]
    if source.rereadable and state_bytes(model, source, one_pass=False, classes=classes) <= room:
        ways.append("leave out --one-pass")
    return ", or ".join([*ways, more])


def _largest_sketch(model: Any, source: Source, room: int, classes: Any) -> int | None:
    """Return the largest sketch size that fits, of the default and its successive halves."""
    size = 128
    while size > Settings.of(model).n_components:
        trial = clone(model).set_params(solver="sketch", sketch_size=size)
        if state_bytes(trial, source, one_pass=True, classes=classes) <= room:
            return size
        size //= 2
    return None
