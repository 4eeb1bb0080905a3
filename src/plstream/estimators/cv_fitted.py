"""FittedFolds: the result of training with cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated, Any, Self

from .._core.schema import Choice, Count, Each, Numbers, Object, OrNone, Text, stored
from .._core.types import Float64Array
from .._core.warnings import warn_user
from ..solvers import FoldReads
from ..solvers.completion import FactorModel, Gaps
from ..solvers.joint import joint_solutions
from ..solvers.solution import Solution
from ..states import Buffered, Folds, Gram, Moments, Sketch
from ..states.folds import all_but_one, merged
from .cv_errors import ClassCrossValidation, CrossValidation, validate_states
from .cv_folds import FoldAssignment
from .cv_missing import FoldModel
from .fitted import Fitted, solver_of, warn_of_small_sketch
from .heads import ClassifierHead, Head
from .missing import CompletingStream, with_means_of_others
from .settings import Settings, buffered


@stored(
    rules={
        "there are at least two folds": lambda its: len(its.folds) > 1,
        "every fold has rows": lambda its: len(its.rows) == len(its.folds),
        "every fold has a model, or none": lambda its: len(its.models) in {0, len(its.folds)},
    }
)
@dataclass(frozen=True)
class FoldRemains:
    """Data of the folds kept after exact reads."""

    folds: Annotated[tuple[Moments, ...], Each(Object(Moments, m="m", q="q"))]
    rows: Annotated[tuple[Float64Array, ...], Each(Numbers(None, "m"))]
    """Rows S of each fold with S'S R = Xc'Xc R."""
    rotations: Annotated[Float64Array | None, OrNone(Numbers("m", None))]
    """R. None for small data, where all rows are kept and S'S = Xc'Xc."""
    models: Annotated[tuple[Solution, ...], Each(Object(Solution, m="m", q="q"))]
    """For each fold, the model of all rows outside it. Not kept for small data, where it is solved again."""

    def state(self, fold: int, settings: Settings) -> Gram | Sketch:
        """Return the state from which a fold continues."""
        moments, rows = self.folds[fold], self.rows[fold]
        if self.rotations is None and settings.streaming_solver(moments.shape[0]) == "gram":
            return Gram.of(moments.copy(), rows)
        size, n_components, scale = settings.sketch_rows, settings.n_components, settings.scale
        if not moments.n_rows:
            return Sketch(*moments.shape, size=size, n_components=n_components, scale=scale)
        return Sketch.of_rows(moments, rows, self.rotations, size=size, n_components=n_components, scale=scale)

    def models_of_others(self, n_components: int, *, scale: bool) -> list[Solution]:
        """Return, for each fold, the model of all rows outside it."""
        if self.models:
            return [model.first(n_components) for model in self.models]
        used = [fold for fold, moments in enumerate(self.folds) if moments.n_rows]
        reads = FoldReads.of_centred([self.folds[fold] for fold in used], [self.rows[fold] for fold in used])
        found: dict[int, Solution] = {}
        for some in joint_solutions(reads.training, reads, n_components, scale=scale):
            found |= some
        # The model that leaves out an empty fold is the model of all rows.
        return [found[used.index(fold) if fold in used else len(used)] for fold in range(len(self.folds))]


_FOLDS = Object(Folds, given={"streams": Each(Object(Buffered, CompletingStream, m="m", q="q"))}, m="m", q="q")


@stored(
    rules={
        "exact reads leave something of every fold": lambda its: (its.remains is None) == (its.moments is None),
        "every fold has errors": lambda its: its.validation is None or len(its.validation.weight) == _n_folds(its),
        "no more components are chosen than were tried": lambda its: (
            its.solution is None or len(its.solution.subspace_error) <= its.n_components
        ),
        "models are solved and validated together": lambda its: (its.solution is None) == (its.validation is None),
    }
)
@dataclass
class FittedFolds(Fitted):
    """The result of training with cross-validation; ``n_components`` is the largest number to try."""

    n_components: Annotated[int, Count(1, size="c")]
    stream: Annotated[Any, OrNone(_FOLDS)]
    solution: Annotated[Solution | None, OrNone(Object(Solution, m="m", q="q"))] = None
    assigned_by: Annotated[str, Text()] = "rows"
    """Rule that assigns rows to folds."""
    rule: Annotated[str, Choice("min", "one-se")] = "min"
    validation: Annotated[
        CrossValidation | ClassCrossValidation | None,
        OrNone(Object(CrossValidation, ClassCrossValidation, c="c", q="q")),
    ] = None
    """Errors of all numbers of components, computed with the solution."""
    remains: Annotated[FoldRemains | None, OrNone(Object(FoldRemains, m="m", q="q"))] = None
    """Data of the folds kept after exact reads."""
    fold_models: Annotated[tuple[FoldModel, ...], Each(Object(FoldModel, m="m", q="q"))] = ()
    """For each fold, the model of all rows outside it, if exact reads have completed missing values."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return _n_folds(self)

    def streamed(self, settings: Settings) -> Self:
        """Return the same model with streams, which continue from the data kept after exact reads."""
        if self.remains is None:
            streams = tuple(map(settings.completing, self.stream.streams))
            return self if streams == self.stream.streams else replace(self, stream=Folds(streams))
        kept = replace(settings, n_components=self.n_components, scale=self.scale)
        of_labels = isinstance(self.head, ClassifierHead)
        states = [self.remains.state(fold, kept) for fold in range(self.n_folds)]
        stream = Folds(settings.completing(buffered(state, of_labels=of_labels)) for state in states)
        return replace(self, stream=stream, solver=solver_of(stream), moments=None, remains=None)

    def solved(self) -> Solution:
        """Return the solution for the rows so far, with the number of components chosen for them."""
        if self.solution is None:
            folds = self._states()
            total = merged(folds)
            validation = validate_states(folds, total, self.head, self.n_components, scale=self.scale)
            if validation.n_folds < 2:
                warn_user("All rows so far are in one fold: the model has one component until other folds have rows.")
            solution = Solution.of(total, total, validation.choice(self.rule), scale=self.scale)
            warn_of_small_sketch(total, solution)
            # In one statement, because an interrupt may come between two.
            vars(self).update(validation=validation, solution=solution)
            return solution
        return self.solution

    def validated(self) -> CrossValidation | ClassCrossValidation:
        """Return the errors of all numbers of components."""
        self.solved()
        assert self.validation is not None
        return self.validation

    def models_of_others(self, n_components: int) -> list[Solution]:
        """Return, for each fold, the model of all rows outside it."""
        if self.remains is not None:
            return self.remains.models_of_others(n_components, scale=self.scale)
        if self.fold_models:
            return [model.first(n_components) for model in self.fold_models]
        states = all_but_one(self._states())
        return [Solution.of(others, others, n_components, scale=self.scale, quiet=True) for others in states]

    def completing_of_others(self) -> list[FactorModel]:
        """Return, for each fold, the factor model of all other folds, which completes its rows."""
        if self.fold_models:
            return [model.completing for model in self.fold_models]
        parts = [stream.all_gaps() for stream in self.stream.streams] if self._completes else []
        models = self.models_of_others(self.n_components)
        others = [reduce(Gaps.merged, parts[:i] + parts[i + 1 :]) for i in range(len(parts))] or [None] * len(models)
        return list(map(FactorModel.of, models, others))

    @property
    def _completes(self) -> bool:
        return self.stream is not None and isinstance(self.stream.streams[0], CompletingStream)

    def _states(self) -> list[Any]:
        """Return the states of the folds; a feature without values in a fold gets the mean of the others."""
        if not self._completes:
            return list(self.stream.states())
        return with_means_of_others(self.stream.streams)

    def _completing_solution(self) -> Solution:
        if self.remains is not None:
            return self.solved()
        total = merged(self._states())
        return Solution.of(total, total, self.n_components, scale=self.scale, quiet=True)

    def after(self, stream: Any, head: Head | None = None) -> Self:
        """Return the model with another stream, and the classes of ``head`` if there are more."""
        return replace(super().after(stream, head), validation=None, fold_models=())

    def merge_signature(self, model: Any) -> dict[str, Any]:
        """Return the properties that must be equal to merge models."""
        folds = {"cv": self.n_folds, "what rows are assigned to folds by": self.assigned_by}
        return super().merge_signature(model) | folds

    def require_same(self, assignment: FoldAssignment) -> None:
        """Raise ValueError unless rows are assigned to folds as before."""
        n_folds = self.n_folds
        if assignment.n_folds != n_folds:
            raise ValueError(f"cv cannot change during a stream: set it back to {n_folds}.")
        if assignment.by != self.assigned_by:
            columns = {
                "folds": "pass folds, the number of the fold of each row (a splitter yields folds 0, 1, ...)",
                "groups": "pass groups, the group of each row",
            }
            otherwise = f"leave out {assignment.by}" if assignment.by in columns else "set block_length back"
            advice = columns.get(self.assigned_by, otherwise)
            raise ValueError(
                f"Earlier rows were assigned to folds by {self.assigned_by}, so later rows cannot be assigned by "
                f"{assignment.by}: {advice}."
            )


def _n_folds(its: Any) -> int:
    """Return the number of folds of an object or of its record in a file."""
    return len(its.remains.folds if its.stream is None else its.stream.streams)
