"""What a fit with cross-validation leaves: states of the folds, or what exact reads know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from .._core.schema import Choice, Count, Each, Numbers, Object, OrNone, Text, stored
from .._core.types import Float64Array
from .._core.warnings import warn_user
from ..solvers import FoldReads
from ..states import Buffered, Folds, Gram, Moments, Sketch
from ..states.folds import all_but_one, merged
from ._cross_validation import ClassCrossValidation, CrossValidation
from ._folds import FoldAssignment
from ._heads import ClassifierHead, Head
from ._solution import Solution, joint_solutions
from .training import GRAM_BLOCK_ROWS, Fitted, Settings, warn_of_small_sketch


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
        "stream": OrNone(Object(Folds, m="m", q="q")),
        "solution": OrNone(Object(Solution, m="m", q="q")),
        "assigned_by": Text(),
        "rule": Choice("min", "one-se"),
        "validation": OrNone(Object(CrossValidation, ClassCrossValidation, c="c", q="q")),
        "remains": OrNone(Object(FoldRemains, m="m", q="q")),
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
    """

    assigned_by: str = "rows"
    rule: str = "min"
    validation: CrossValidation | ClassCrossValidation | None = None
    remains: FoldRemains | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return _n_folds(self)

    def streamed(self, settings: Settings) -> Self:
        """Return the same with a stream: after reads of the data again, it continues from what they have left."""
        if self.remains is None:
            return self
        preserved = replace(settings, n_components=self.n_components, scale=self.scale)
        states = [self.remains.state(fold, preserved) for fold in range(self.n_folds)]
        return self._with_states(states, isinstance(self.head, ClassifierHead), moments=None, remains=None)

    def as_sketch(self, size: int) -> Self:
        """Return the same with sketches in place of Gram matrices."""
        states = [
            Sketch.of_gram(gram, size=size, n_components=self.n_components, scale=self.scale)
            for gram in self.stream.states()
        ]
        return self._with_states(states, self.stream.streams[0].of_labels)

    def _with_states(self, states: list[Any], of_labels: bool, **changes: Any) -> Self:  # noqa: FBT001
        stream = Folds(
            Buffered(state, getattr(state, "size", GRAM_BLOCK_ROWS), of_labels=of_labels) for state in states
        )
        return replace(self, stream=stream, solver=type(stream.state).__name__.lower(), **changes)

    def solved(self) -> Solution:
        """Return the solution for the rows so far, with the number of components chosen for them."""
        if self.solution is None:
            folds = self.stream.states()
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
        states = all_but_one(self.stream.states())
        return [Solution.of(others, others, n_components, scale=self.scale, quiet=True) for others in states]

    def after(self, stream: Any, head: Head | None = None) -> Self:
        """Return what is left with another stream, and perhaps more classes."""
        return replace(super().after(stream, head), validation=None)

    def alike(self, model: Any) -> dict[str, Any]:
        """Return what models must have in common to be merged."""
        folds = {"cv": self.n_folds, "what rows are dealt to folds by": self.assigned_by}
        return super().alike(model) | folds

    def require_same(self, assignment: FoldAssignment) -> None:
        """Raise ValueError unless rows are assigned to folds as those before."""
        n_folds = self.n_folds
        if assignment.n_folds != n_folds:
            raise ValueError(f"cv cannot change in mid-stream: set it back to {n_folds}.")
        if assignment.by != self.assigned_by:
            raise ValueError(
                f"Rows were dealt to folds by {self.assigned_by} before, and cannot be by {assignment.by} now."
            )


def _n_folds(its: Any) -> int:
    """Return the number of folds of what a fit has left."""
    return len(its.remains.folds if its.stream is None else its.stream.streams)
