"""What a fit with cross-validation leaves: states of the folds, or what exact reads know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

from .._core.schema import Choice, Count, Each, Numbers, Object, OrNone, Text, stored
from .._core.types import Float64Array
from .._core.warnings import warn_user
from ..solvers import FoldReads
from ..solvers.completion import FactorModel, Gaps
from ..states import Buffered, Folds, Gram, Moments, Sketch
from ..states.folds import all_but_one, merged
from ._cv_errors import ClassCrossValidation, CrossValidation
from ._cv_folds import FoldAssignment
from ._cv_missing import FoldModel
from ._fitted import Fitted, warn_of_small_sketch
from ._heads import ClassifierHead, Head
from ._missing import CompletingStream, with_means_of_others
from ._solution import Solution, joint_solutions
from .settings import GRAM_BLOCK_ROWS, Settings


@stored(
    {
        "folds": Each(Object(Moments, m="m", q="q")),
        "rows": Each(Numbers(None, "m")),
        "rotations": OrNone(Numbers("m", None)),
        "models": Each(Object(Solution, m="m", q="q")),
    },
    {
        "there are two folds or more": lambda its: len(its.folds) > 1,
        "every fold has rows": lambda its: len(its.rows) == len(its.folds),
        "every fold has a model, or none": lambda its: len(its.models) in {0, len(its.folds)},
    },
)
@dataclass(frozen=True)
class FoldRemains:
    """What exact reads leave of the folds.

    Attributes
    ----------
    folds : tuple of Moments
        The moments of each fold.
    rows : tuple of ndarray of shape (n, m)
        Rows S of each fold with S'S R = Xc'Xc R.
    rotations : ndarray of shape (m, c), or None
        R. None if S'S is all of Xc'Xc, as of little data, all of which is kept.
    models : tuple of Solution
        The model of all rows but those of each fold. Of little data it is solved for again.
    """

    folds: tuple[Moments, ...]
    rows: tuple[Float64Array, ...]
    rotations: Float64Array | None
    models: tuple[Solution, ...]

    def state(self, fold: int, settings: Settings) -> Gram | Sketch:
        """Return the state that continues from a fold."""
        moments, rows = self.folds[fold], self.rows[fold]
        if self.rotations is None and settings.streaming_solver(moments.shape[0]) == "gram":
            return Gram.of(moments.copy(), rows)
        size, n_components, scale = settings.sketch_rows, settings.n_components, settings.scale
        if not moments.n_rows:
            return Sketch(*moments.shape, size=size, n_components=n_components, scale=scale)
        return Sketch.of_rows(moments, rows, self.rotations, size=size, n_components=n_components, scale=scale)

    def models_of_others(self, n_components: int, *, scale: bool) -> list[Solution]:
        """Return the model of all rows but those of each fold."""
        if self.models:
            return [model.first(n_components) for model in self.models]
        used = [fold for fold, moments in enumerate(self.folds) if moments.n_rows]
        reads = FoldReads.of_centred([self.folds[fold] for fold in used], [self.rows[fold] for fold in used])
        found: dict[int, Solution] = {}
        for some in joint_solutions(reads.training, reads, n_components, scale=scale):
            found |= some
        # A fold without rows takes nothing from the model of all rows.
        return [found[used.index(fold) if fold in used else len(used)] for fold in range(len(self.folds))]


@stored(
    {
        "n_components": Count(1, size="c"),
        "stream": OrNone(
            Object(Folds, given={"streams": Each(Object(Buffered, CompletingStream, m="m", q="q"))}, m="m", q="q")
        ),
        "solution": OrNone(Object(Solution, m="m", q="q")),
        "assigned_by": Text(),
        "rule": Choice("min", "one-se"),
        "validation": OrNone(Object(CrossValidation, ClassCrossValidation, c="c", q="q")),
        "remains": OrNone(Object(FoldRemains, m="m", q="q")),
        "fold_models": Each(Object(FoldModel, m="m", q="q")),
    },
    {
        "exact reads leave something of every fold": lambda its: (its.remains is None) == (its.moments is None),
        "every fold has errors": lambda its: its.validation is None or len(its.validation.weight) == _n_folds(its),
        "as many components are chosen as were tried, or fewer": lambda its: (
            its.solution is None or len(its.solution.subspace_error) <= its.n_components
        ),
        "models are solved and validated together": lambda its: (its.solution is None) == (its.validation is None),
    },
)
@dataclass
class FittedFolds(Fitted):
    """What a fit with cross-validation has left; ``n_components`` is the largest number to try.

    Attributes
    ----------
    assigned_by : str
        What decides on the fold of a row.
    rule : str
        How the number of components is chosen.
    validation : CrossValidation, ClassCrossValidation or None
        Errors of all numbers of components, computed with the solution.
    remains : FoldRemains or None
        What reads of the data again have left of the folds.
    fold_models : tuple of FoldModel
        If rows had missing values that reads of the data again have completed, the models of all rows but those of each
        fold.
    """

    assigned_by: str = "rows"
    rule: str = "min"
    validation: CrossValidation | ClassCrossValidation | None = None
    remains: FoldRemains | None = None
    fold_models: tuple[FoldModel, ...] = ()

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return _n_folds(self)

    def streamed(self, settings: Settings) -> Self:
        """Return the same with a stream: after reads of the data again, it continues from what they have left."""
        if self.remains is None:
            streams = tuple(map(settings.completing, self.stream.streams))
            return self if streams == self.stream.streams else replace(self, stream=Folds(streams))
        preserved = replace(settings, n_components=self.n_components, scale=self.scale)
        states = [self.remains.state(fold, preserved) for fold in range(self.n_folds)]
        streamed = self._with_states(states, isinstance(self.head, ClassifierHead), moments=None, remains=None)
        return streamed.streamed(settings)

    def as_sketch(self, size: int) -> Self:
        """Return the same with sketches in place of Gram matrices."""
        states = [
            Sketch.of_gram(gram, size=size, n_components=self.n_components, scale=self.scale)
            for gram in self.stream.states()
        ]
        sketches = self._with_states(states, self.stream.streams[0].of_labels)
        if not isinstance(self.stream.streams[0], CompletingStream):
            return sketches
        pairs = zip(sketches.stream.streams, self.stream.streams, strict=True)
        return replace(sketches, stream=Folds(before.around(sketch) for sketch, before in pairs))

    def _with_states(self, states: list[Any], of_labels: bool, **changes: Any) -> Self:  # noqa: FBT001
        stream = Folds(
            Buffered(state, getattr(state, "size", GRAM_BLOCK_ROWS), of_labels=of_labels) for state in states
        )
        return replace(self, stream=stream, solver=type(stream.state).__name__.lower(), **changes)

    def solved(self) -> Solution:
        """Return the solution for the rows so far, with the number of components chosen for them."""
        if self.solution is None:
            folds = self._states()
            total = merged(folds)
            validation: CrossValidation | ClassCrossValidation
            if isinstance(self.head, ClassifierHead):
                validation = ClassCrossValidation.of(folds, total, self.n_components, scale=self.scale)
            else:
                validation = CrossValidation.of(
                    folds, total, self.n_components, scale=self.scale, y_is_vector=self.head.is_vector
                )
            if validation.n_folds < 2:
                warn_user("All rows so far are in one fold: until there are others, the model has one component.")
            solution = Solution.of(total, total, validation.choice(self.rule), scale=self.scale)
            warn_of_small_sketch(total, solution)
            # Both at once, for an interrupt may come between two statements.
            vars(self).update(validation=validation, solution=solution)
            return solution
        return self.solution

    def validated(self) -> CrossValidation | ClassCrossValidation:
        """Return the errors of all numbers of components."""
        self.solved()
        assert self.validation is not None
        return self.validation

    def models_of_others(self, n_components: int) -> list[Solution]:
        """Return the model of all rows but those of each fold."""
        if self.remains is not None:
            return self.remains.models_of_others(n_components, scale=self.scale)
        if self.fold_models:
            return [
                model.solution.first(min(n_components, len(model.solution.factors.score_squares)))
                for model in self.fold_models
            ]
        states = all_but_one(self._states())
        return [Solution.of(others, others, n_components, scale=self.scale, quiet=True) for others in states]

    def completing_of_others(self) -> list[FactorModel]:
        """Return what completes the rows of each fold: the model of all other rows."""
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
        """Return the states of the folds; a feature that has no value in one of them has the mean of the others."""
        if not self._completes:
            return list(self.stream.states())
        return with_means_of_others(self.stream.streams)

    def _completing_solution(self) -> Solution:
        total = merged(self._states()) if self.remains is None else None
        if total is None:
            return self.solved()
        return Solution.of(total, total, self.n_components, scale=self.scale, quiet=True)

    def after(self, stream: Any, head: Head | None = None) -> Self:
        """Return what is left with another stream, and perhaps more classes."""
        return replace(super().after(stream, head), validation=None, fold_models=())

    def alike(self, model: Any) -> dict[str, Any]:
        """Return what models must have in common to be merged."""
        folds = {"cv": self.n_folds, "what rows are assigned to folds by": self.assigned_by}
        return super().alike(model) | folds

    def require_same(self, assignment: FoldAssignment) -> None:
        """Raise ValueError unless rows are assigned to folds as those before."""
        n_folds = self.n_folds
        if assignment.n_folds != n_folds:
            raise ValueError(f"cv cannot change during a stream: set it back to {n_folds}.")
        if assignment.by != self.assigned_by:
            raise ValueError(
                f"Rows were assigned to folds by {self.assigned_by} before, and cannot be by {assignment.by} now."
            )


def _n_folds(its: Any) -> int:
    """Return the number of folds of what a fit has left."""
    return len(its.remains.folds if its.stream is None else its.stream.streams)
