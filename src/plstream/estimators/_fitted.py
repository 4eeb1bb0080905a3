"""What a fit has left: head, stream or moments, and the solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from .._core.schema import Boolean, Choice, Count, Object, OrNone, is_in_proportion, most_components, stored
from .._core.types import Float64Array
from .._core.warnings import warn_user
from ..solvers.completion import FactorModel, Gaps
from ..states import Buffered, Gram, Moments, Sketch
from ._heads import ClassifierHead, Head, RegressionHead
from ._missing import CompletingStream
from ._solution import Solution
from .settings import Settings, Stream

_SOLVERS = frozenset({"auto", "multipass", "gram", "sketch"})
# Estimated sine of the angle to the exact solution, above which there is a warning.
LARGEST_SUBSPACE_ERROR = 0.3


def _buffers(stream: Any) -> tuple[Any, ...]:
    """Return the buffers of a stream, one per fold if it has folds."""
    return () if stream is None else getattr(stream, "streams", (stream,))


def are_affordable(n_components: int, its: Any) -> bool:
    """Return whether a solution with so many components is in proportion to the arrays of what a fit has left."""
    m, q, n_folds = its.sizes["m"], its.sizes["q"], len(_buffers(its.stream))
    return n_components <= most_components(m) and is_in_proportion(n_components * (3 * m + (n_folds + 1) * q), its)


@stored(
    {
        "head": Object(RegressionHead, ClassifierHead, q="q"),
        "solver": Choice("multipass", "gram", "sketch"),
        "n_components": Count(1, size="s"),
        "scale": Boolean(),
        "stream": OrNone(Object(Buffered, CompletingStream, m="m", q="q")),
        "moments": OrNone(Object(Moments, Gram, Sketch, m="m", q="q")),
        "gaps": OrNone(Object(Gaps, m="m", n="m+q")),
        "solution": OrNone(Object(Solution, m="m", q="q", s="s")),
        "n_reads": Count(1),
        "completing": OrNone(Object(FactorModel, m="m", q="q")),
    },
    {
        "there is a stream or a solution": lambda its: its.stream is not None or its.solution is not None,
        "there is a stream or moments": lambda its: (its.stream is None) != (its.moments is None),
        "the solver is that of the state": lambda its: (
            ({buffer.state.cls.__name__.lower() for buffer in _buffers(its.stream)} or {"multipass"}) == {its.solver}
        ),
        "rows that wait have all responses, or classes by number": lambda its: all(
            buffer._Y.shape[1] == getattr(its.head, "n_targets", 1) for buffer in _buffers(its.stream)
        ),
        "components are in proportion to its arrays": lambda its: are_affordable(its.n_components, its),
    },
)
@dataclass
class Fitted:
    """What a fit has left. It is replaced as a whole, so that results never mix two of them.

    Attributes
    ----------
    head : RegressionHead or ClassifierHead
        What y is.
    solver : str
        The solver in use: "multipass", "gram" or "sketch".
    n_components, scale
        What to solve with.
    stream : Buffered, Folds or None
        The streaming state; None after reads of the data again.
    moments : Moments, Gram, Sketch or None
        What reads of the data again have left of the rows, besides the solution.
    solution : Solution or None
        Computed when it is first asked for.
    n_reads : int
        Reads of the data that ``fit`` has made; rows of ``partial_fit`` are read once.
    gaps : Gaps or None
        Missing cells of the rows, if there were any that reads of the data again have completed.
    completing : FactorModel or None
        Completes rows; computed when it is first asked for, if reads of the data again have not left it.
    """

    head: Head
    solver: str
    n_components: int
    scale: bool
    stream: Any
    moments: Moments | None = None
    solution: Solution | None = None
    n_reads: int = 1
    gaps: Gaps | None = None
    completing: FactorModel | None = None

    @property
    def missing(self) -> Gaps | None:
        """Missing cells of all rows, or None if there cannot be any."""
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
        """Return the solution that rows are completed by."""
        return self.solved()

    def current(self) -> Any:
        """Return the moments of all rows, by the state if there is one."""
        return self.stream.current() if self.moments is None else self.moments

    def streamed(self, settings: Settings) -> Self:
        """Return the same with a stream: after reads of the data again, it goes on from what they have left."""
        if self.moments is None:
            return self
        assert self.solution is not None
        preserved = replace(settings, n_components=self.n_components, scale=self.scale)
        of_labels = isinstance(self.head, ClassifierHead)
        stream = preserved.stream_after(self.moments, self.solution, self.gaps, of_labels=of_labels)
        return self._with_stream(stream, moments=None, gaps=None)

    def as_sketch(self, size: int) -> Self:
        """Return the same with a sketch in place of a Gram matrix."""
        gram = self.stream.current()
        sketch = Sketch.of_gram(gram, size=size, n_components=self.n_components, scale=self.scale)
        stream: Stream = Buffered(sketch, size, of_labels=self.stream.of_labels)
        if isinstance(self.stream, CompletingStream):
            gaps = self.stream.all_gaps()
            stream = CompletingStream.of(stream, n_components=self.n_components, scale=self.scale, gaps=gaps)
        return self._with_stream(stream)

    def _with_stream(self, stream: Stream, **changes: Any) -> Self:
        return replace(self, stream=stream, solver=type(stream.state).__name__.lower(), **changes)

    def solved(self) -> Solution:
        """Return the solution for the rows so far, solving for it if that has not been done."""
        if self.solution is None:
            state = self.stream.current()
            solution = Solution.of(state, state, self.n_components, scale=self.scale)
            warn_of_small_sketch(state, solution)
            self.solution = solution
        return self.solution

    def has_parameters_of(self, model: Any) -> bool:
        """Return whether all parameters of a model are those that its stream has, and so valid."""
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
        """Return what is left with another stream, and perhaps more classes."""
        return replace(self, stream=stream, head=head or self.head, solution=None, completing=None)

    def alike(self, model: Any) -> dict[str, Any]:
        """Return what models must have in common to be merged."""
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
            **self.head.alike,
        }


def warn_of_small_sketch(state: Gram | Sketch, solution: Solution) -> None:
    """Warn if a sketch is too small for the components it is solved for."""
    errors: Float64Array = solution.subspace_error
    too_large = errors > LARGEST_SUBSPACE_ERROR
    if isinstance(state, Sketch) and too_large.any():
        good = int(np.argmax(too_large))
        why = f"sketch_size={state.size} is small for this data"
        advice = "Use a larger sketch_size, or fewer components."
        if state.unresolved:
            why = "fit has left no more of its rows than the solution needs"
            advice = "Fit with solver='gram' or 'sketch' where rows are to follow, or fit all rows again."
        warn_user(
            f"{why}: only the first {good} of {len(errors)} components are likely to be close to those of an exact fit "
            f"(see subspace_error_). {advice}"
        )
