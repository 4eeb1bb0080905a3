"""Export of models as ONNX graphs, which compute scores, predictions and labels without Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import plstream

from .._core.types import Array, Float64Array
from ..estimators import StreamingPipeline
from ..estimators.classifier import ClassifierMethods
from ..online import IncrementalLDA
from .files import replacing

# Supported by all recent runtimes.
_OPSET = 17
_IR_VERSION = 8
# The size limit of an ONNX file.
_LARGEST_BYTES = (1 << 31) - 1
# Affine steps of chemotools, x A + b. A and b follow from the results for unit vectors and for zero.
_AFFINE = frozenset(
    {
        "ConstantBaselineCorrection",
        "IndexSelector",
        "LinearCorrection",
        "MeanFilter",
        "NorrisWilliams",
        "PolynomialCorrection",
        "RangeCut",
        "SavitzkyGolay",
        "SavitzkyGolayFilter",
    }
)


def export_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    method: str | None = None,
    dtype: Any = np.float32,
    overwrite: bool = True,
) -> None:
    """Export a fitted model as an ONNX graph.

    The graph has an input ``X`` with any number of rows. Its output ``scores`` equals the result of ``transform``, and
    ``prediction`` that of ``predict``: values, or labels of their original type. Models with ``predict_proba`` also
    have an output ``probabilities``. Rows are centred before multiplication, as in this library.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this library. The graph of a :class:`plstream.StreamingPipeline` contains all steps,
        computed in float64; its input is that of the first step.
    path : str or path-like
        Path of the output; an existing file is replaced only when the new one is complete.
    method : {"transform", "predict"}, default=None
        What the graph computes. By default, everything that the model supports.
    dtype : {float32, float64}, default=float32
        The type of the input and of scores; predicted values are float64. In float32, the mean is subtracted in two
        parts, so that columns far from zero lose no further digits.
    overwrite : bool, default=True
        Whether to replace an existing file. Otherwise FileExistsError is raised.

    Notes
    -----
    Requires the package onnx: ``pip install 'plstream[onnx]'``. The metadata of the file contains the version of the
    library, the class and the feature names. Unlike a model file (:func:`save`), the graph cannot be trained further.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream import IncrementalPLS
    >>> from plstream.files import export_onnx
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = IncrementalPLS().fit(X, X[:, 0])
    >>> with TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     export_onnx(model, Path(folder, "model.onnx"))
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("export_onnx requires the package onnx: pip install 'plstream[onnx]'.") from None
    number_type = np.dtype(dtype)
    if number_type not in {np.dtype(np.float32), np.dtype(np.float64)}:
        raise ValueError(f"dtype must be float32 or float64, not {number_type}.")
    if not type(model).__module__.startswith("plstream."):
        raise TypeError(f"Only estimators of plstream can be exported, not {type(model).__name__}.")
    if getattr(model, "missing", "error") != "error":
        raise ValueError("An ONNX graph cannot complete missing values: export the model with missing='error'.")
    check_is_fitted(model)
    available = [name for name in ("transform", "predict") if hasattr(model, name)]
    if method is not None and method not in available:
        raise ValueError(f"method must be one of {', '.join(available)} for {type(model).__name__}, not {method!r}.")
    graph, last = _Graph(onnx, number_type), model
    if isinstance(model, StreamingPipeline):
        graph.treat(model._before)
        last = model[-1]
    for name in available if method is None else [method]:
        (_add_transform if name == "transform" else _add_predict)(graph, last)
    content = graph.finished(model)
    with replacing(path, overwrite=overwrite) as file:
        file.write(content)


def _add_transform(graph: _Graph, model: Any) -> None:
    if hasattr(model, "get_support"):
        kept = model.get_support(indices=True).astype(np.int64)
        features = graph.node("Gather", graph.rows, graph.constant("columns", kept), axis=1)
        graph.output("scores", features, graph.number_type, [None, len(kept)])
        return
    solution = model._solution()
    # Online methods have one projection, PLS models one for each number of components.
    matrix = solution.projection(None) if callable(solution.projection) else solution.projection
    scores = graph.product(solution.x_mean, matrix, "projection")
    graph.output("scores", scores, graph.number_type, [None, matrix.shape[1]])


def _add_predict(graph: _Graph, model: Any) -> None:
    solution = model._solution()
    if isinstance(model, ClassifierMethods):
        projection = solution.projection(None)
        _add_decision(graph, model, projection, "projection", model._decision(projection.shape[1]))
        return
    if isinstance(model, IncrementalLDA):
        _add_decision(graph, model, solution.directions, "directions", solution.decision(model.priors_))
        return
    values = graph.product(solution.x_mean, solution.coef.T, "coefficients")
    values = graph.node("Add", graph.as_double(values), graph.exact("intercept", solution.intercept))
    classes = getattr(model, "classes_", None)
    if classes is None:
        encoding = getattr(model, "_encoding", None)
        is_vector = model._fitted.head.is_vector if encoding is None else encoding.is_vector
        if is_vector:
            values = graph.node("Squeeze", values, graph.constant("axis", np.array([1])))
        graph.output("prediction", values, np.dtype(np.float64), [None] if is_vector else [None, len(solution.y_mean)])
    elif len(solution.y_mean) > 1:
        graph.labels(classes, graph.node("ArgMax", values, axis=1, keepdims=0))
    else:
        values = graph.node("Squeeze", values, graph.constant("axis", np.array([1])))
        is_second = graph.node("Greater", values, graph.exact("zero", np.zeros(())))
        graph.labels(classes, graph.node("Cast", is_second, to=graph.onnx.TensorProto.INT64))


def _add_decision(
    graph: _Graph, model: ClassifierMethods | IncrementalLDA, projection: Float64Array, name: str, decision: Any
) -> None:
    """Add labels and probabilities, computed from the projection of the given name."""
    scores = graph.product(model._solution().x_mean, projection, name)
    values = graph.node("MatMul", graph.as_double(scores), graph.exact("decision", decision.matrix))
    values = graph.node("Add", values, graph.exact("decision_offset", decision.offset))
    graph.labels(model.classes_, graph.node("ArgMax", values, axis=1, keepdims=0))
    if decision.of_likelihoods:
        probabilities = graph.node("Softmax", values, axis=1)
    else:
        shares = graph.node("Relu", values)
        total = graph.node("ReduceSum", shares, graph.constant("classes_axis", np.array([1])), keepdims=1)
        probabilities = graph.node("Div", shares, total)
    graph.output("probabilities", probabilities, np.dtype(np.float64), [None, len(model.classes_)])


def _as_utf8(label: Any) -> bytes:
    text = label.decode(errors="replace") if isinstance(label, bytes) else str(label)
    if isinstance(label, bytes) and text.encode() != label:
        raise ValueError(f"The label {label!r} cannot be encoded as UTF-8, which ONNX requires: fit with other labels.")
    return text.encode()


class _Graph:
    """A graph under construction. Constants of type float64 are converted to the type of the graph."""

    def __init__(self, onnx: Any, number_type: np.dtype[Any]) -> None:
        self.onnx = onnx
        self.number_type = number_type
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._outputs: list[Any] = []
        self.rows = "X"
        self._centred = ""

    def treat(self, steps: list[tuple[str, Any]]) -> None:
        """Add the steps of a pipeline, which transform the rows."""
        rows = self.as_double(self.rows)
        for name, step in steps:
            rows = _add_step(self, name, step, rows)
        if steps and self.number_type != np.float64:
            rows = self.node("Cast", rows, to=self.onnx.TensorProto.FLOAT)
        self.rows = rows if steps else self.rows

    def constant(self, name: str, array: Array) -> str:
        """Add an array, and return its name."""
        return self.exact(name, self._in_range(name, array) if array.dtype == np.float64 else array)

    def exact(self, name: str, array: Array) -> str:
        """Add an array without conversion, and return its name."""
        self._constants[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def node(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation, and return the name of its result."""
        name = f"{operation.lower()}_{len(self._nodes)}"
        self._nodes.append(self.onnx.helper.make_node(operation, inputs, [name], **attributes))
        return name

    def as_double(self, result: str) -> str:
        """Add a conversion to float64, if needed."""
        if self.number_type == np.float64:
            return result
        return self.node("Cast", result, to=self.onnx.TensorProto.DOUBLE)

    def product(self, mean: Float64Array, matrix: Float64Array, name: str) -> str:
        """Add (X - mean) matrix."""
        if not self._centred:
            self._centred = self._minus_mean(mean)
        return self.node("MatMul", self._centred, self.constant(name, matrix))

    def labels(self, classes: Array, index: str) -> None:
        """Add the labels of classes, given by index, as output."""
        if classes.dtype.kind in "USO":
            entries = [_as_utf8(entry) for entry in classes.tolist()]
            kind = self.onnx.TensorProto.STRING
            self._constants["classes"] = self.onnx.helper.make_tensor("classes", kind, [len(entries)], entries)
            self._add_output("prediction", self.node("Gather", "classes", index), kind, [None])
            return
        if classes.dtype.kind == "f" and classes.dtype.itemsize > 8:
            raise ValueError(
                f"Labels of type {classes.dtype} are not supported by ONNX: fit with labels of type float64."
            )
        wide = classes.astype(classes.dtype.newbyteorder("="))
        self._constants["classes"] = self.onnx.numpy_helper.from_array(wide, "classes")
        self.output("prediction", self.node("Gather", "classes", index), wide.dtype, [None])

    def output(self, name: str, result: str, dtype: np.dtype[Any], shape: list[int | None]) -> None:
        """Add an output with the given name."""
        self._add_output(name, result, self.onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)

    def finished(self, model: Any) -> bytes:
        """Return the file."""
        helper = self.onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(self.number_type)
        rows = helper.make_tensor_value_info("X", kind, ["rows", int(model.n_features_in_)])
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, type(model).__name__, [rows], self._outputs, constants)
        version = plstream.__version__
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="plstream",
            producer_version=version,
        )
        properties = {"plstream_version": version, "class": type(model).__name__}
        if hasattr(model, "feature_names_in_"):
            properties["feature_names"] = json.dumps(model.feature_names_in_.tolist())
        helper.set_model_props(made, properties)
        if made.ByteSize() > _LARGEST_BYTES:
            raise ValueError("The model is too large for an ONNX file, which can hold 2 GB: fit fewer components.")
        self.onnx.checker.check_model(made, full_check=True)
        content: bytes = made.SerializeToString()
        return content

    def _add_output(self, name: str, result: str, kind: int, shape: list[int | None]) -> None:
        self._nodes.append(self.onnx.helper.make_node("Identity", [result], [name]))
        sizes = ["rows" if size is None else size for size in shape]
        self._outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, sizes))

    def _minus_mean(self, mean: Float64Array) -> str:
        centred = self.node("Sub", self.rows, self.constant("mean", mean))
        rest = mean - mean.astype(self.number_type)
        # The difference between a row and a close rounded mean is exact, so the rounding error of the mean matters.
        return self.node("Sub", centred, self.constant("mean_rest", rest)) if rest.any() else centred

    def _in_range(self, name: str, array: Float64Array) -> Array:
        """Return numbers in the type of the graph; raise ValueError if they are out of its range."""
        with np.errstate(over="ignore", under="ignore"):
            numbers = array.astype(self.number_type)
        finite = np.isfinite(array)
        largest = np.abs(array[finite]).max(initial=0.0)
        kept = np.abs(numbers[finite]).max(initial=0.0)
        # A shift may vanish relative to the data, but a factor must not.
        vanished = name not in {"mean_rest", "zero"} and largest > 0 and kept < np.finfo(self.number_type).tiny
        if not np.isfinite(numbers[finite]).all() or vanished:
            raise ValueError(
                f"The model has numbers that {self.number_type} cannot hold ({name}): export it with dtype=float64, or "
                "scale the features."
            )
        return numbers


def _add_step(graph: _Graph, name: str, step: Any, rows: str) -> str:
    """Add a fitted step, given the name of its float64 input, and return the name of its result."""
    while isinstance(step, FrozenEstimator):
        step = step.estimator
    library, kind = type(step).__module__.partition(".")[0], type(step).__name__
    if library == "chemotools" and kind in _AFFINE:
        return _affine(graph, name, step, rows)
    add = _OTHERS.get((library, kind))
    if add is None or (kind, getattr(step, "scale_reference", False)) == ("SubtractReference", True):
        raise ValueError(
            f"Step {name!r} ({kind}) cannot be part of an ONNX graph: export only the last step, and transform rows "
            "before they are passed to it."
        )
    return add(graph, name, step, rows)


def _affine(graph: _Graph, name: str, step: Any, rows: str) -> str:
    zero = np.asarray(step.transform(np.zeros((1, step.n_features_in_))))
    matrix = np.asarray(step.transform(np.eye(step.n_features_in_))) - zero
    result = graph.node("MatMul", rows, graph.exact(f"{name}_matrix", matrix))
    return graph.node("Add", result, graph.exact(f"{name}_offset", zero)) if zero.any() else result


def _shifted_and_divided(graph: _Graph, name: str, rows: str, shift: Array | None, divisor: Array | None) -> str:
    if shift is not None:
        rows = graph.node("Sub", rows, graph.exact(f"{name}_shift", np.asarray(shift, dtype=np.float64)))
    if divisor is not None:
        rows = graph.node("Div", rows, graph.exact(f"{name}_divisor", np.asarray(divisor, dtype=np.float64)))
    return rows


def _standard_scaler(graph: _Graph, name: str, step: Any, rows: str) -> str:
    mean = step.mean_ if step.with_mean else None
    return _shifted_and_divided(graph, name, rows, mean, step.scale_ if step.with_std else None)


def _min_max_scaler(graph: _Graph, name: str, step: Any, rows: str) -> str:
    rows = graph.node("Mul", rows, graph.exact(f"{name}_scale", np.asarray(step.scale_, dtype=np.float64)))
    rows = graph.node("Add", rows, graph.exact(f"{name}_min", np.asarray(step.min_, dtype=np.float64)))
    if not step.clip:
        return rows
    bounds = (graph.exact(f"{name}_{k}", np.array(float(bound))) for k, bound in enumerate(step.feature_range))
    return graph.node("Clip", rows, *bounds)


def _max_abs_scaler(graph: _Graph, name: str, step: Any, rows: str) -> str:
    return _shifted_and_divided(graph, name, rows, None, step.scale_)


def _normal_variate(graph: _Graph, _name: str, _step: Any, rows: str) -> str:
    """Add (x - mean) / deviation of each row."""
    centred = graph.node("Sub", rows, graph.node("ReduceMean", rows, axes=[1]))
    variance = graph.node("ReduceMean", graph.node("Mul", centred, centred), axes=[1])
    return graph.node("Div", centred, graph.node("Sqrt", variance))


def _scatter_correction(graph: _Graph, name: str, step: Any, rows: str) -> str:
    """Add (x - c) / s, where c and s are the regression of each row on the reference."""
    slope, intercept = (
        graph.node("MatMul", rows, graph.exact(f"{name}_{part}", (step.weights_ * row)[:, None]))
        for part, row in zip(("slope", "intercept"), step.pinv_A_, strict=True)
    )
    return graph.node("Div", graph.node("Sub", rows, intercept), slope)


def _subtract_reference(graph: _Graph, name: str, step: Any, rows: str) -> str:
    return _shifted_and_divided(graph, name, rows, step.reference_, None)


def _normalizer(graph: _Graph, name: str, step: Any, rows: str) -> str:
    """Add x / |x|; rows of zeros are unchanged."""
    size = graph.node("Abs", rows)
    if step.norm == "l2":
        axes = graph.exact(f"{name}_axes", np.array([1]))
        length = graph.node("Sqrt", graph.node("ReduceSum", graph.node("Mul", rows, rows), axes))
    elif step.norm == "l1":
        length = graph.node("ReduceSum", size, graph.exact(f"{name}_axes", np.array([1])))
    else:
        length = graph.node("ReduceMax", size, axes=[1])
    is_zero = graph.node("Equal", length, graph.exact(f"{name}_zero", np.zeros(())))
    return graph.node("Div", rows, graph.node("Where", is_zero, graph.exact(f"{name}_one", np.ones(())), length))


_OTHERS: dict[tuple[str, str], Callable[[_Graph, str, Any, str], str]] = {
    ("sklearn", "StandardScaler"): _standard_scaler,
    ("sklearn", "MinMaxScaler"): _min_max_scaler,
    ("sklearn", "MaxAbsScaler"): _max_abs_scaler,
    ("sklearn", "Normalizer"): _normalizer,
    ("chemotools", "StandardNormalVariate"): _normal_variate,
    ("chemotools", "MultiplicativeScatterCorrection"): _scatter_correction,
    ("chemotools", "SubtractReference"): _subtract_reference,
}
