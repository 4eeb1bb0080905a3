"""Pipeline steps in ONNX graphs, which transform rows before the model, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from sklearn.frozen import FrozenEstimator

from .._core.types import Array

# Affine steps of chemotools: rows x become x A + b. Both follow from the results for unit vectors and for zero.
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


class Graph(Protocol):
    """A graph under construction, see ``onnx.py``."""

    def node(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation, and return the name of its result."""

    def exact(self, name: str, array: Array) -> str:
        """Add an array without conversion, and return its name."""


def add_step(graph: Graph, name: str, step: Any, rows: str) -> str:
    """Add a fitted step, given the name of rows in float64, and return the name of its result.

    Raises ValueError if the class of the step is not supported.
    """
    while isinstance(step, FrozenEstimator):
        step = step.estimator
    library, kind = type(step).__module__.partition(".")[0], type(step).__name__
    if library == "chemotools" and kind in _AFFINE:
        return _affine(graph, name, step, rows)
    add = _OTHERS.get((library, kind))
    if add is None or (kind, getattr(step, "scale_reference", False)) == ("SubtractReference", True):
        raise ValueError(
            f"Step {name!r}, {kind}, cannot be part of an ONNX graph: export the last step, and treat rows before."
        )
    return add(graph, name, step, rows)


def _affine(graph: Graph, name: str, step: Any, rows: str) -> str:
    zero = np.asarray(step.transform(np.zeros((1, step.n_features_in_))))
    matrix = np.asarray(step.transform(np.eye(step.n_features_in_))) - zero
    result = graph.node("MatMul", rows, graph.exact(f"{name}_matrix", matrix))
    return graph.node("Add", result, graph.exact(f"{name}_offset", zero)) if zero.any() else result


def _shifted_and_divided(graph: Graph, name: str, rows: str, shift: Array | None, divisor: Array | None) -> str:
    if shift is not None:
        rows = graph.node("Sub", rows, graph.exact(f"{name}_shift", np.asarray(shift, dtype=np.float64)))
    if divisor is not None:
        rows = graph.node("Div", rows, graph.exact(f"{name}_divisor", np.asarray(divisor, dtype=np.float64)))
    return rows


def _standard_scaler(graph: Graph, name: str, step: Any, rows: str) -> str:
    mean = step.mean_ if step.with_mean else None
    return _shifted_and_divided(graph, name, rows, mean, step.scale_ if step.with_std else None)


def _min_max_scaler(graph: Graph, name: str, step: Any, rows: str) -> str:
    rows = graph.node("Mul", rows, graph.exact(f"{name}_scale", np.asarray(step.scale_, dtype=np.float64)))
    rows = graph.node("Add", rows, graph.exact(f"{name}_min", np.asarray(step.min_, dtype=np.float64)))
    if not step.clip:
        return rows
    bounds = (graph.exact(f"{name}_{k}", np.array(float(bound))) for k, bound in enumerate(step.feature_range))
    return graph.node("Clip", rows, *bounds)


def _max_abs_scaler(graph: Graph, name: str, step: Any, rows: str) -> str:
    return _shifted_and_divided(graph, name, rows, None, step.scale_)


def _normal_variate(graph: Graph, _name: str, _step: Any, rows: str) -> str:
    """Add (x - mean) / deviation of each row."""
    centred = graph.node("Sub", rows, graph.node("ReduceMean", rows, axes=[1]))
    variance = graph.node("ReduceMean", graph.node("Mul", centred, centred), axes=[1])
    return graph.node("Div", centred, graph.node("Sqrt", variance))


def _scatter_correction(graph: Graph, name: str, step: Any, rows: str) -> str:
    """Add (x - c) / s, where c and s are the regression of each row on the reference."""
    slope, intercept = (
        graph.node("MatMul", rows, graph.exact(f"{name}_{part}", (step.weights_ * row)[:, None]))
        for part, row in zip(("slope", "intercept"), step.pinv_A_, strict=True)
    )
    return graph.node("Div", graph.node("Sub", rows, intercept), slope)


def _subtract_reference(graph: Graph, name: str, step: Any, rows: str) -> str:
    return _shifted_and_divided(graph, name, rows, step.reference_, None)


def _normalizer(graph: Graph, name: str, step: Any, rows: str) -> str:
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


_OTHERS: dict[tuple[str, str], Callable[[Graph, str, Any, str], str]] = {
    ("sklearn", "StandardScaler"): _standard_scaler,
    ("sklearn", "MinMaxScaler"): _min_max_scaler,
    ("sklearn", "MaxAbsScaler"): _max_abs_scaler,
    ("sklearn", "Normalizer"): _normalizer,
    ("chemotools", "StandardNormalVariate"): _normal_variate,
    ("chemotools", "MultiplicativeScatterCorrection"): _scatter_correction,
    ("chemotools", "SubtractReference"): _subtract_reference,
}
