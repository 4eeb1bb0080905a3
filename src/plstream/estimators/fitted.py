"""Fitted: the result of training, with a head, a stream or moments, and the solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated, Any, Self

import numpy as np

from .._core.schema import Boolean, Choice, Count, Object, OrNone, is_in_proportion, most_components, stored
from .._core.types import Float64Array
from .._core.warnings import warn_user
from ..solvers.completion import FactorModel, Gaps
from ..solvers.solution import Solution
from ..states import Buffered, Folds, Gram, Moments, Sketch
from ..states.sketch_errors import SEED_SAFETY
from .heads import ClassifierHead, Head, RegressionHead
from .missing import CompletingStream
from .settings import Settings, Stream, buffered

_SOLVERS = frozenset({"auto", "multipass", "gram", "sketch"})
# Estimated sine of the angle to the exact solution above which a warning is issued.
LARGEST_SUBSPACE_ERROR = 0.3


def _buffers(stream: Any) -> tuple[Any, ...]:
    """Return the buffers of a stream, one per fold if it has folds."""
    return () if stream is None else getattr(stream, "streams", (stream,))


def solver_of(stream: Any) -> str:
    """Return the name of the solver of a stream."""
    return type(stream.state).__name__.lower()


def are_affordable(n_components: int, its: Any) -> bool:
    """Return whether a solution with this many components is in proportion to the arrays of a fitted model."""
    m, q, n_folds = its.sizes["m"], its.sizes["q"], len(_buffers(its.stream))
    return n_components <= most_components(m) and is_in_proportion(n_components * (3 * m + (n_folds + 1) * q), its)


@stored(
    rules={
        "there is a stream or a solution": lambda its: its.stream is not None or its.solution is not None,
        "there is a stream or moments": lambda its: (its.stream is None) != (its.moments is None),
        "the solver is that of the state": lambda its: (
            ({buffer.state.cls.__name__.lower() for buffer in _buffers(its.stream)} or {"multipass"}) == {its.solver}
        ),
        "rows that wait have all responses, or classes by number": lambda its: all(
            buffer._Y.shape[1] == getattr(its.head, "n_targets", 1) for buffer in _buffers(its.stream)
        ),
        "components are in proportion to its arrays": lambda its: are_affordable(its.n_components, its),
    }
)
@dataclass
class Fitted:
    """The result of training. It is replaced as a whole, so that attributes never mix two results."""

    head: Annotated[Head, Object(RegressionHead, ClassifierHead, q="q")]
    solver: Annotated[str, Choice("multipass", "gram", "sketch")]
    """The solver in use."""
    n_components: Annotated[int, Count(1, size="s")]
    scale: Annotated[bool, Boolean()]
    stream: Annotated[Any, OrNone(Object(Buffered, CompletingStream, m="m", q="q"))]
    """The streaming state (Buffered or Folds); None after exact reads."""
    moments: Annotated[Moments | None, OrNone(Object(Moments, Gram, Sketch, m="m", q="q"))] = None
    """Moments, Gram matrix or sketch of the rows, if they were read exactly."""
    solution: Annotated[Solution | None, OrNone(Object(Solution, m="m", q="q", s="s"))] = None
    """Computed when it is first needed."""
    n_reads: Annotated[int, Count(1)] = 1
    gaps: Annotated[Gaps | None, OrNone(Object(Gaps, m="m", n="m+q"))] = None
    """Missing cells that exact reads have completed."""
    completing: Annotated[FactorModel | None, OrNone(Object(FactorModel, m="m", q="q"))] = None
    """Completes rows; computed when it is first needed."""

    @property
    def missing(self) -> Gaps | None:
        """Missing cells of all rows, or None if missing values are not accepted."""
        parts = [buffer.all_gaps() for buffer in _buffers(self.stream) if isinstance(buffer, CompletingStream)]
        return reduce(Gaps.merged, parts) if parts else self.gaps

    @property
    def n_rows(self) -> int:
        """Number of training samples."""
        return int((self.stream if self.moments is None else self.moments).n_rows)

    def factor_model(self) -> FactorModel:
        """Return the model that completes rows."""
        if self.completing is None:
            self.completing = FactorModel.of(self._completing_solution(), self.missing)
        return self.completing

    def _completing_solution(self) -> Solution:
        """Return the solution whose factor model completes rows."""
        return self.solved()

    def current(self) -> Any:
        """Return the state of all rows, or their moments after exact reads."""
        return self.stream.current() if self.moments is None else self.moments

    @classmethod
    def of_stream(cls, head: Head, settings: Settings, stream: Any, **others: Any) -> Self:
        """Return a stream as the result of training, to be solved with the given settings."""
        return cls(head, solver_of(stream), settings.n_components, settings.scale, stream, **others)

    def streamed(self, settings: Settings) -> Self:
        """Return the same model with a stream, which continues from the data kept after exact reads."""
        if self.moments is None:
            return self
        assert self.solution is not None
        kept = replace(settings, n_components=self.n_components, scale=self.scale)
        state = self.moments
        if not isinstance(state, Gram | Sketch):
            state = Sketch.seeded(
                state,
                self.solution.factors,
                self.solution.x_scale,
                size=kept.sketch_rows,
                n_components=self.n_components,
                scale=self.scale,
            )
        stream = kept.completing(buffered(state, of_labels=isinstance(self.head, ClassifierHead)), self.gaps)
        return replace(self, stream=stream, solver=solver_of(stream), moments=None, gaps=None)

    def as_sketch(self, size: int) -> Self:
        """Return the same model with sketches instead of Gram matrices."""
        streams = [self._sketch_of(stream, size) for stream in _buffers(self.stream)]
        stream = Folds(streams) if isinstance(self.stream, Folds) else streams[0]
        return replace(self, stream=stream, solver=solver_of(stream))

    def _sketch_of(self, stream: Any, size: int) -> Stream:
        sketch = Sketch.of_gram(stream.current(), size=size, n_components=self.n_components, scale=self.scale)
        sketched = buffered(sketch, of_labels=stream.of_labels)
        return stream.around(sketched) if isinstance(stream, CompletingStream) else sketched

    def solved(self) -> Solution:
        """Return the solution for the rows so far."""
        if self.solution is None:
            state = self.stream.current()
            solution = Solution.of(state, state, self.n_components, scale=self.scale)
            warn_of_small_sketch(state, solution)
            self.solution = solution
        return self.solution

    def has_parameters_of(self, model: Any) -> bool:
        """Return whether the parameters of a model equal those of its stream, and are therefore valid."""
        state = self.stream.state
        return (
            getattr(model, "n_components", None) == self.n_components
            and model.scale is self.scale
            and getattr(model, "forgetting", 1.0) == state.forgetting
            and model.solver in _SOLVERS
            and (model.sketch_size is None or model.sketch_size == getattr(state, "size", None))
            and model.batch_size is None
            and getattr(model, "read_tol", 0.0) == 0.0
            and getattr(model, "max_reads", None) is None
        )

    def after(self, stream: Any, head: Head | None = None) -> Self:
        """Return the model with another stream, and the classes of ``head`` if there are more."""
        return replace(self, stream=stream, head=head or self.head, solution=None, completing=None)

    def merge_signature(self, model: Any) -> dict[str, Any]:
        """Return the properties that must be equal to merge models."""
        state = self.stream.state
        return {
            "the class": type(model).__name__,
            "n_components": self.n_components,
            "scale": self.scale,
            "solver_": self.solver,
            "forgetting": state.forgetting,
            "sketch_size": getattr(state, "size", None),
            "missing": "model" if isinstance(_buffers(self.stream)[0], CompletingStream) else "error",
            "n_features_in_": model.n_features_in_,
            **self.head.merge_signature,
        }


def warn_of_small_sketch(state: Gram | Sketch, solution: Solution) -> None:
    """Warn if a sketch is too small for the components it is solved for."""
    errors: Float64Array = solution.subspace_error
    # After an exact fit, estimates are on the safe side: likely errors are smaller by this factor.
    safety = SEED_SAFETY if isinstance(state, Sketch) and state.errors.unresolved else 1.0
    too_large = errors > safety * LARGEST_SUBSPACE_ERROR
    if isinstance(state, Sketch) and too_large.any():
        good = int(np.argmax(too_large))
        why = f"sketch_size={state.size} is small for this data"
        advice = "Use a larger sketch_size, or fewer components."
        if state.errors.unresolved:
            why = "fit keeps only as much of its rows as its own solution needs"
            advice = "If more rows will follow, fit with solver='gram' or 'sketch', or fit all rows again."
        warn_user(
            f"{why}: only the first {good} of {len(errors)} components are likely to be close to those of an exact fit "
            f"(see subspace_error_). {advice}"
        )
