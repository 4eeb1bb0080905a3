"""Every class that a model file may name, with all of its fields: a file that has anything else is refused.

Symbols in shapes have one value in a model: m features, q columns of y, c components for each of these, k classes, s
scores, L principal components, r the rank that is kept, w rows that wait, f folds, a components that are monitored.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from .._core import labels as _labels
from .._core.types import Array
from ..estimators import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV, IncrementalPLSCV
from ..estimators._cross_validation import ClassCrossValidation, CrossValidation
from ..estimators._heads import ClassifierHead, RegressionHead
from ..estimators._solution import Solution
from ..estimators.cross_validation import FittedFolds
from ..estimators.training import Fitted
from ..monitoring import DriftTracker, Monitor
from ..monitoring.cusum import WARM_UP, Cusum
from ..monitoring.drift import WATCHED, Batch, Measured, Snapshot
from ..monitoring.limits import Q_LIMITS, Traces
from ..monitoring.monitor import Normal
from ..online import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
from ..online._base import OnlineState, RunningMean
from ..online.ccipca import PrincipalComponents, PrincipalDirections
from ..online.cipls import NormalizedRecursion, PaperRecursion, StackedModels
from ..online.ipls import Covariances, IPLSSolution
from ..online.lda import BLOCK_ROWS, Discriminants, IndicatorRegression, WithinScatter
from ..online.olpls import OLPLSState
from ..online.sgdpls import CrossCovarianceSVD, IncrementalSVD, MatrixGradient, StochasticGradient
from ..selection import ILFS, InfFS, InfFSS, InfFSU, VIPSelector
from ..solvers import Factors, Journal
from ..solvers.multipass import Sums
from ..states import Buffered, Folds, Gram, Moments, Sketch
from ..states.sketch import Residual
from .kinds import (
    LARGEST_COMPONENTS,
    Count,
    Entries,
    FeatureNames,
    FloatType,
    Kind,
    Labels,
    LongText,
    Maybe,
    Number,
    Numbers,
    Several,
    Text,
    Truth,
)
from .records import FirstParameters, OneOf, ParameterOr, Record, Rule, from_state

# Rows that a sketch may hold; memory is taken for them when a stream goes on.
_LARGEST_SKETCH = 1 << 25


def _solved(*shape: int | str, least: float = -np.inf) -> Numbers:
    """Numbers of a solution, in either order; where units are extreme, some are infinite."""
    return Numbers(*shape, least=least, finite=False, any_order=True)


# States of IncrementalPLS.

MOMENTS: dict[str, Kind] = {
    "forgetting": Number(0, 1),
    "n_rows": Count(),
    "weight": Number(0),
    "typical_weight": Number(0),
    "x_origin": Numbers("m"),
    "x_offset": Numbers("m"),
    "y_origin": Numbers("q"),
    "y_offset": Numbers("q"),
    "cross": Numbers("m", "q", any_order=True),
    "x_squares": Numbers("m", least=0),
    "y_squares": Numbers("q", least=0),
}
Record(Moments, MOMENTS)
Record(Gram, MOMENTS | {"upper": Numbers("m", "m", any_order=True)})
Record(
    Residual,
    {
        "diagonal": Numbers("m", least=0),
        "directions": Numbers(None, "m", types=("F64", "F32"), any_order=True),
    },
    take=lambda residual: residual._asdict(),
    build=lambda kind, fields: kind(**fields),
)
Record(
    Sketch,
    MOMENTS
    | {
        "size": Count(1, _LARGEST_SKETCH),
        "n_components": Count(1, LARGEST_COMPONENTS),
        "scale": Truth(),
        "pieces": Several(Numbers(None, "m", types=("F64", "F32"), any_order=True)),
        "unit": Numbers("m", least=0),
        "residuals": Several(OneOf("Residual")),
        "lost": Numbers("m", least=0),
        "loudest": Numbers("m", least=0),
        "quiet": Numbers("m", types=("BOOL",)),
        "dtype": FloatType("float32", "float64"),
        "compressed": Truth(),
        "rotations": Numbers(None, "m", any_order=True),
        "known_weight": Number(0),
        "known_rows": Number(0),
        "known_squares": Number(0),
        "errors": Numbers(3, "c"),
        "subspace_error": Numbers(None, least=0),
    },
    rules={
        "all rows have one type": lambda its: all(piece.array.dtype == its["dtype"] for piece in its["pieces"]),
        "a sketch of size n has at most 3n + 1 rows": lambda its: (
            sum(piece.shape[0] for piece in its["pieces"]) <= 3 * its["size"] + 1
        ),
    },
)
Record(
    Buffered,
    {
        "state": OneOf("Gram", "Sketch"),
        "block_rows": Count(1, _LARGEST_SKETCH),
        "n_waiting": Count(size="w"),
        "_peaks": Several(Number(0), 2),
        "_X": Numbers("w", "m", types=("F64", "F32")),
        "_Y": Numbers("w", None),
        "_weight": Numbers("w", least=0),
    },
    rules={
        "fewer rows wait than make a block": lambda its: its["n_waiting"] < its["block_rows"],
        "blocks have 1024 rows, or those of the sketch": lambda its: (
            its["block_rows"] == its["state"].fields.get("size", 1024)
        ),
        "y has all responses, or classes by number": lambda its: _is_y(
            its["_Y"], its["state"].fields["y_squares"].shape[0]
        ),
    },
    # Of the rows in its buffer, only those that wait.
    take=lambda stream: stream.__getstate__(),
    build=from_state,
)
Record(
    Folds,
    {"streams": Several(OneOf("Buffered"), own="w")},
    rules={"there are two folds or more": lambda its: len(its["streams"]) > 1},
)


def _is_y(Y: Array, n_targets: int) -> bool:
    numbers = np.arange(n_targets)
    return Y.shape[1] == n_targets or (Y.shape[1] == 1 and bool(np.isin(Y, numbers).all()))


Record(Sums, {"v": _solved("m"), "action": Numbers("m", anything=True), "square": Number(finite=False)})
Record(
    Journal,
    {
        "moments": Maybe(OneOf("Moments")),
        "actions": Several(OneOf("Sums")),
        "n_reads": Count(),
        "n_rows": Count(),
    },
    rules={
        "reads are the first one and one for every action": lambda its: (
            len(its["actions"]) in {max(its["n_reads"] - 1, 0), its["n_reads"]}
        ),
        "there are moments": lambda its: its["moments"] is not None or not (its["n_reads"] or its["n_rows"]),
    },
    take=lambda journal: {name: value for name, value in vars(journal).items() if name != "tell"},
    build=lambda _, fields: Journal(**{**fields, "actions": list(fields["actions"])}),
)


# Recursions of the online methods.

Record(
    RunningMean,
    {
        "origin": Numbers("n"),
        "offset": Numbers("n"),
        "unit": Number(0),
        "n_rows": Count(),
        "total": Number(0, finite=False),
    },
)
Record(_labels.Labels, {"classes": Labels(), "kind": Text("truth values", "integers", "floats", "text")})
Record(
    _labels.TargetEncoding,
    {"labels": Maybe(OneOf("Labels")), "n_columns": Count(1, size="q"), "is_vector": Truth()},
    rules={
        "there is one column for two classes, else one for each": lambda its: (
            its["labels"] is None or its["n_columns"] == _columns_for(len(its["labels"].fields["classes"]))
        ),
        "a vector has one column": lambda its: (
            its["is_vector"] if its["labels"] is not None else not its["is_vector"] or its["n_columns"] == 1
        ),
    },
)


def _columns_for(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes


Record(
    NormalizedRecursion,
    {
        "cross": Numbers("q", "m"),
        "actions": Numbers("q", "c", "m"),
        "squares": Numbers("q", "c"),
        "residuals": Numbers("q", "c+1"),
        "y_products": Numbers("q", "c"),
        "t_squares": Numbers("q", "c"),
        "amnesic": Number(0),
        "x_total": Number(0),
        "y_total": Numbers("q"),
    },
)
Record(
    PaperRecursion,
    {
        "W": Numbers("q", "c", "m"),
        "P": Numbers("q", "c", "m"),
        "Q": Numbers("q", "c"),
        "squares": Numbers("q", "c", least=0, finite=False),
        "released": Truth(),
    },
)
Record(
    PrincipalDirections,
    {
        "V": Numbers("L", "m"),
        "squares": Numbers("L", least=0),
        "ages": Numbers("L", least=0),
        "row_squares": Numbers(2, least=0),
        "amnesic": Numbers(4, least=0),
    },
)
Record(
    Covariances,
    {
        "cross": Numbers("q", "m"),
        "x_square": Number(0),
        "y_squares": Numbers("q"),
        "principal": OneOf("PrincipalDirections"),
    },
)
Record(
    OLPLSState,
    {
        "S": Numbers("q", "c", "m"),
        "W": Numbers("q", "c", "m"),
        "P": Numbers("q", "c", "m"),
        "C": Numbers("q", "c"),
        "T": Numbers("q", "c"),
        "forgetting": Number(0, 1),
        "eta": Number(0, 1),
        "eta_loading": Number(0, 1),
    },
)
Record(IncrementalSVD, {"U": Numbers("r", "m"), "s": Numbers("r", least=0), "V": Numbers("r", "q")})
_LAST_ROW: dict[str, Kind] = {
    "previous_x": Numbers("m"),
    "previous_y": Numbers("q"),
    "totals": Numbers(3),
    "eta0": Number(0),
    "n_steps": Count(1, LARGEST_COMPONENTS),
}
Record(
    MatrixGradient,
    {
        "U": Numbers("r", "m"),
        "s": Numbers("r", least=0),
        "V": Numbers("r", "q"),
        "covariance": Numbers("r", "r"),
        "n_components": Count(1, LARGEST_COMPONENTS),
        **_LAST_ROW,
    },
    rules={"there are no more components than rows": lambda its: its["n_components"] <= len(its["s"])},
)
Record(
    StochasticGradient,
    {
        "U": Numbers("c", "m"),
        "U_factor": Numbers("c", "c"),
        "V": Numbers("c", "q"),
        "V_factor": Numbers("c", "c"),
        "begun": Numbers(1, types=("I64",), least=0),
        "covariance": Numbers("c", "c"),
        **_LAST_ROW,
    },
    # Compiled loops take it for the number of rows that there are.
    rules={"no more rows have begun than there are": lambda its: its["begun"][0] <= len(its["U"])},
)
Record(
    WithinScatter,
    {
        "origin": Numbers("m"),
        "unit": Number(0),
        "counts": Numbers("k", least=0, most=2.0**53),
        "offsets": Numbers("k", "m"),
        "lower": Numbers("m", "m", any_order=True),
        "waiting": Numbers("w", "m"),
        "waiting_classes": Numbers("w", types=("I64",), least=0),
    },
    rules={
        "fewer rows wait than a block has": lambda its: len(its["waiting"]) < BLOCK_ROWS,
        "rows that wait are of classes that there are": lambda its: (
            its["waiting_classes"].max(initial=0) < len(its["counts"])
        ),
    },
)
Record(
    IndicatorRegression,
    {
        "B": Numbers("q", "m"),
        "A": Numbers("q", "m"),
        "C": Numbers("q", "m"),
        "squares": Numbers("m", least=0),
        "length": Numbers(1, least=0),
        "eta": Number(0, 1),
    },
)
_RECURSIONS = (
    "NormalizedRecursion",
    "PaperRecursion",
    "PrincipalDirections",
    "Covariances",
    "OLPLSState",
    "IncrementalSVD",
    "MatrixGradient",
    "StochasticGradient",
    "IndicatorRegression",
)

# Solutions.

Record(
    Factors,
    {
        "x_weights": _solved("m", "s"),
        "x_loadings": _solved("m", "s"),
        "x_rotations": _solved("m", "s"),
        "y_loadings": _solved("q", "s"),
        "score_squares": _solved("s"),
        "n_components": Count(),
    },
)
Record(
    Solution,
    {
        "factors": OneOf("Factors"),
        "x_mean": Numbers("m"),
        "y_mean": Numbers("q"),
        "x_scale": Numbers("m", least=0),
        "y_scale": Numbers("q", least=0),
        "x_total": Number(0, finite=False),
        "y_total": Number(0, finite=False),
        "retained_variance": Number(finite=False),
        "subspace_error": Numbers("s", anything=True),
        "weight": Number(0),
    },
)
Record(
    CrossValidation,
    {
        "rmse": Numbers("f", "c", "q", anything=True),
        "weight": Numbers("f", least=0),
        "y_deviation": Numbers("q", least=0),
        "y_unit": Numbers("q", least=0),
        "y_is_vector": Truth(),
    },
)
Record(ClassCrossValidation, {"accuracy": Numbers("f", "c", anything=True), "weight": Numbers("f", least=0)})
Record(
    StackedModels,
    {
        "x_mean": Numbers("m"),
        "y_mean": Numbers("q"),
        "x_weights": _solved("m", "q*c"),
        "x_loadings": _solved("m", "q*c"),
        "x_rotations": _solved("m", "q*c"),
        "y_loadings": _solved("q", "q*c"),
        "y_lengths": _solved("q", "q*c"),
        "n_components": Count(),
    },
)
Record(
    PrincipalComponents,
    {
        "x_mean": Numbers("m"),
        "components": _solved("L", "m"),
        "explained_variance": _solved("L", least=0),
        "explained_variance_ratio": _solved("L", least=0),
        "n_components": Count(),
    },
)
Record(
    IPLSSolution,
    {
        "x_mean": Numbers("m"),
        "x_weights": _solved("m", "q*c"),
        "pca_components": _solved("L", "m"),
        "pca_explained_variance": _solved("L", least=0),
    },
)
Record(
    CrossCovarianceSVD,
    {
        "x_mean": Numbers("m"),
        "y_mean": Numbers("q"),
        "x_weights": _solved("m", "s"),
        "y_weights": _solved("q", "s"),
        "singular_values": _solved("s", least=0),
        "n_components": Count(),
    },
)
Record(
    Discriminants,
    {
        "solver": Text("scatter", "covariance-free"),
        "x_mean": Numbers("m"),
        "means": _solved("k", "m"),
        "shares": Numbers("k", least=0, most=1),
        "scalings": _solved("m", "s"),
        "explained_variance_ratio": _solved("s"),
        "directions": _solved("m", "all"),
        "centres": _solved("k", "all"),
    },
)

# Estimators.

_FEATURES: dict[str, Kind] = {"n_features_in_": Count(size="m"), "feature_names_in_": FeatureNames()}
_NO_NAMES = frozenset({"feature_names_in_"})

Record(
    RegressionHead,
    {"n_targets": Count(1, size="q"), "is_vector": Truth()},
    rules={"a vector has one column": lambda its: not its["is_vector"] or its["n_targets"] == 1},
)
Record(ClassifierHead, {"labels": OneOf("Labels", k="q")})


def _has_head(name: str, its: dict[str, Any]) -> bool:
    return bool(its["_fitted"].fields["head"].record.cls.__name__ == name)


_FITTED: dict[str, Kind] = {
    "head": OneOf("RegressionHead", "ClassifierHead"),
    "solver": Text("multipass", "gram", "sketch"),
    "scale": Truth(),
    "n_rows_read": Count(),
    "solution": Maybe(OneOf("Solution")),
}
Record(
    Fitted,
    _FITTED | {"n_components": Count(1, LARGEST_COMPONENTS, size="s"), "stream": Maybe(OneOf("Buffered"))},
    rules={
        "there is a stream or a solution": lambda its: its["stream"] is not None or its["solution"] is not None,
        "the solver is that of the state": lambda its: its["solver"] == _solver_of(its["stream"]),
        "rows are counted once": lambda its: its["stream"] is None or its["n_rows_read"] == 0,
        "rows that wait have all responses, or classes by number": lambda its: (
            its["stream"] is None or _waiting_columns(its["stream"]) == _columns_of(its["head"])
        ),
    },
)
Record(
    FittedFolds,
    _FITTED
    | {
        "n_components": Count(1, LARGEST_COMPONENTS, size="c"),
        "stream": OneOf("Folds"),
        "assigned_by": Text(),
        "rule": Text("min", "one-se"),
        "validation": Maybe(OneOf("CrossValidation", "ClassCrossValidation")),
    },
    rules={
        "the solver is that of the states": lambda its: all(
            its["solver"] == _solver_of(stream) for stream in its["stream"].fields["streams"]
        ),
        "rows that wait have all responses, or classes by number": lambda its: all(
            _waiting_columns(stream) == _columns_of(its["head"]) for stream in its["stream"].fields["streams"]
        ),
        "scores are those of labels or values": lambda its: (
            its["validation"] is None or ("accuracy" in its["validation"].fields) == ("labels" in its["head"].fields)
        ),
        "every fold has errors": lambda its: (
            its["validation"] is None
            or its["validation"].fields["weight"].shape == (len(its["stream"].fields["streams"]),)
        ),
        "as many components are chosen as were tried, or fewer": lambda its: (
            its["solution"] is None or its["solution"].fields["subspace_error"].shape[0] <= its["n_components"]
        ),
        "models are solved and validated together": lambda its: (
            (its["solution"] is None) == (its["validation"] is None)
        ),
    },
)
for _estimator, _left, _head in (
    (IncrementalPLS, "Fitted", "RegressionHead"),
    (IncrementalPLSClassifier, "Fitted", "ClassifierHead"),
    (IncrementalPLSCV, "FittedFolds", "RegressionHead"),
    (IncrementalPLSClassifierCV, "FittedFolds", "ClassifierHead"),
):
    Record(
        _estimator,
        _FEATURES | {"_fitted": OneOf(_left)},
        optional=_NO_NAMES,
        parameters={},
        rules={"y is what the method learns": partial(_has_head, _head)},
    )


def _waiting_columns(stream: Any) -> int:
    return int(stream.fields["_Y"].shape[1])


def _columns_of(head: Any) -> int:
    return int(head.fields.get("n_targets", 1))


def _solver_of(stream: Any) -> str:
    return "multipass" if stream is None else str(stream.fields["state"].record.cls.__name__).lower()


def _online(cls: Any, recursions: tuple[str, ...], solution: str, more: dict[str, Kind], **sizes: str) -> None:
    """Enter an online method, with the classes that it is made of, and the parameters that are sizes."""
    Record(
        cls,
        {
            **_FEATURES,
            "_begun_with": FirstParameters(cls._fixed_parameters(), **sizes),
            "_state": OneOf("OnlineState", *(name for name in recursions if name not in _RECURSIONS)),
            "_solved": Maybe(OneOf(solution)),
            **more,
        },
        optional=_NO_NAMES,
        parameters={},
        rules={"the state is that of the method": lambda its: _recursion_of(its["_state"]) in recursions},
    )


def _recursion_of(state: Any) -> str:
    inner = state.fields.get("recursion", state)
    return str(inner.record.cls.__name__)


Record(
    OnlineState,
    {"x": OneOf("RunningMean", n="m"), "y": OneOf("RunningMean", n="q"), "recursion": OneOf(*_RECURSIONS)},
)
_WITH_Y: dict[str, Kind] = {"_encoding": OneOf("TargetEncoding")}
_online(CIPLS, ("NormalizedRecursion", "PaperRecursion"), "StackedModels", _WITH_Y, n_components="c")
_online(OLPLS, ("OLPLSState",), "StackedModels", _WITH_Y, n_components="c")
_online(CCIPCA, ("PrincipalDirections",), "PrincipalComponents", {}, n_components="L")
_online(IPLS, ("Covariances",), "IPLSSolution", _WITH_Y, n_components="c")
_online(
    SGDPLS,
    ("IncrementalSVD", "MatrixGradient", "StochasticGradient"),
    "CrossCovarianceSVD",
    _WITH_Y,
    n_components="s",
)
_online(IncrementalLDA, ("WithinScatter", "IndicatorRegression"), "Discriminants", _WITH_Y)

_RANKING: dict[str, Kind] = {
    **_FEATURES,
    "scores_": Numbers("m", finite=False),
    "ranking_": Numbers("m", types=("I64",), least=1),
    "support_": Numbers("m", types=("BOOL",)),
    "classes_": Labels(),
}
_FACTORS: dict[str, Kind] = {
    "log_odds_": Numbers("m", finite=False),
    "probabilities_": Numbers("m", least=0, most=1),
    "token_probabilities_": Numbers(2, "t", least=0, most=1, any_order=True),
}


def _is_ranking(its: dict[str, Any]) -> bool:
    ranking = its["ranking_"]
    return np.array_equal(np.sort(ranking), np.arange(1, len(ranking) + 1))


def _keeps_the_first(its: dict[str, Any]) -> bool:
    return np.array_equal(its["support_"], its["ranking_"] <= np.count_nonzero(its["support_"]))


for _selector, _more in ((InfFS, {}), (InfFSU, {}), (InfFSS, {}), (ILFS, _FACTORS)):
    Record(
        _selector,
        _RANKING | _more,
        optional=_NO_NAMES | {"classes_"},
        parameters={},
        rules={"ranks are 1, 2, ...": _is_ranking, "the first features are kept": _keeps_the_first},
    )

_WITH_STATES = ("IncrementalPLS", "IncrementalPLSCV", "IncrementalPLSClassifier", "IncrementalPLSClassifierCV")
_WITH_VIP = (*_WITH_STATES, "CIPLS", "OLPLS")
Record(FrozenEstimator, {}, parameters={"estimator": OneOf(*_WITH_VIP)})
Record(
    VIPSelector,
    {"estimator_": ParameterOr("estimator", OneOf(*_WITH_VIP, "FrozenEstimator"))},
    parameters={"estimator": Maybe(OneOf(*_WITH_VIP, "FrozenEstimator"))},
)

MODEL = OneOf(
    *_WITH_STATES,
    *("CIPLS", "CCIPCA", "IPLS", "OLPLS", "SGDPLS"),
    "IncrementalLDA",
    *("InfFS", "InfFSU", "InfFSS", "ILFS", "VIPSelector"),
)

# Monitors and trackers of these.

_MONITORED = OneOf(*_WITH_STATES)


def _tuple(cls: Any, fields: dict[str, Kind], rules: dict[str, Rule] | None = None) -> None:
    """Enter a named tuple."""
    Record(cls, fields, rules=rules, take=lambda value: value._asdict(), build=lambda made, entries: made(**entries))


def _has_components(solution: Any, n_components: int) -> bool:
    """Return whether a solution has so many components, and the columns of all."""
    factors = solution.fields["factors"].fields
    return bool(factors["n_components"] == n_components <= factors["score_squares"].shape[0])


def _n_features(model: Any) -> int | None:
    return None if model.fields is None else int(model.fields["n_features_in_"])


def _n_values(model: Any) -> int:
    """Return how many columns of values a fitted model has for y: none if that holds labels."""
    return int(model.fields["_fitted"].fields["head"].fields.get("n_targets", 0))


_tuple(Traces, {"first": Number(), "second": Number(), "third": Number(), "unit": Number(0)})
_tuple(
    Normal,
    {
        "mean": Numbers("a"),
        "whitening": Numbers("a", "a", any_order=True),
        "n_rows": Number(0),
        "residuals": OneOf("Traces"),
    },
)
Record(
    Monitor,
    {
        "model": _MONITORED,
        "level": Number(0, 1),
        "q_limit": Text(*Q_LIMITS),
        "held_out": Truth(),
        "_solution": OneOf("Solution"),
        "_n_rows": Number(0),
        "_unit": Number(0),
        "_reference": Maybe(OneOf("Gram", m="r", q="w")),
        "_normal": Maybe(OneOf("Normal")),
    },
    rules={
        "the model has the features that are monitored": lambda its: (
            _n_features(its["model"]) == its["_solution"].fields["x_mean"].shape[0]
        ),
        "all components are monitored": lambda its: (
            its["_normal"] is None or _has_components(its["_solution"], its["_normal"].fields["mean"].shape[0])
        ),
        "reference rows are of all components": lambda its: (
            its["_reference"] is None
            or _has_components(its["_solution"], its["_reference"].fields["x_squares"].shape[0] - 2)
        ),
    },
)
_MEASURED: dict[str, Kind] = {
    "error": Number(finite=False),
    "outside": Number(finite=False),
    "shift": Number(finite=False),
    "shifted_feature": LongText(),
}
_tuple(Measured, _MEASURED)
_tuple(
    Batch,
    {
        "n_rows": Count(),
        "n_seen": Count(),
        **_MEASURED,
        "angle": Number(finite=False),
        "retained_variance": Number(finite=False),
        "reference": Maybe(OneOf("Measured")),
        "alarms": Several(Text(*WATCHED)),
        "reasons": Several(LongText()),
    },
)
_tuple(Snapshot, {"solution": OneOf("Solution"), "moments": OneOf("Moments", q="v"), "n_batches": Count()})
Record(
    Cusum,
    {
        "size": Count(WARM_UP),
        "fixed": Truth(),
        "least": Number(0),
        "usual": Numbers(None, 2),
        "total": Number(0),
        "n_rising": Count(),
        "raised": Truth(),
    },
    rules={
        "there are no more usual values than its size": lambda its: len(its["usual"]) <= its["size"],
        "values have weights": lambda its: bool((its["usual"][:, 1] > 0).all()),
    },
    take=lambda cusum: {**vars(cusum), "usual": np.array(cusum.usual).reshape(-1, 2)},
    build=lambda cls, fields: cls(**{**fields, "usual": deque(map(tuple, fields["usual"].tolist()))}),
)


def _tracker_fields(tracker: DriftTracker) -> dict[str, Any]:
    return {
        **vars(tracker),
        "alarms_": [{"number": number, "batch": batch} for number, batch in tracker.alarms_],
        "_sums": tracker._sums.values(),
        "_reference_sums": tracker._reference_sums.values(),
    }


def _tracker_of(cls: Any, fields: dict[str, Any]) -> DriftTracker:
    tracker: DriftTracker = cls(
        fields["model"], **{name: fields[name] for name in ("window", "threshold", "max_history")}
    )
    tracker.history_.extend(fields["history_"])
    tracker.alarms_.extend((alarm["number"], alarm["batch"]) for alarm in fields["alarms_"])
    sums = {name: dict(zip(WATCHED, fields[name], strict=False)) for name in ("_sums", "_reference_sums")}
    rest = fields.keys() - sums.keys() - {"history_", "alarms_"}
    vars(tracker).update({name: fields[name] for name in rest} | sums)
    return tracker


Record(
    DriftTracker,
    {
        "model": _MONITORED,
        "window": Count(WARM_UP),
        "threshold": Number(0, finite=False),
        "max_history": Count(),
        "history_": Several(OneOf("Batch")),
        "alarms_": Several(Entries(number=Count(), batch=OneOf("Batch"))),
        "n_batches_": Count(),
        "_sums": Several(OneOf("Cusum"), len(WATCHED)),
        "_reference": Maybe(OneOf("Snapshot")),
        "_reference_sums": Several(OneOf("Cusum")),
        "_n_quiet": Count(),
        "_moments": Maybe(OneOf("Moments", q="v")),
        "_earlier": Maybe(Numbers("m", None)),
    },
    rules={
        "there is a sum for all that is watched, with a reference": lambda its: (
            len(its["_reference_sums"]) == (0 if its["_reference"] is None else len(WATCHED))
        ),
        "the model has the features and responses of the rows before": lambda its: (
            its["_moments"] is None
            or its["_moments"].fields["cross"].shape == (_n_features(its["model"]), _n_values(its["model"]))
        ),
        "a reference is of rows before": lambda its: its["_reference"] is None or its["_moments"] is not None,
    },
    take=_tracker_fields,
    build=_tracker_of,
)

SAVED = OneOf(*MODEL.classes, "Monitor", "DriftTracker")
