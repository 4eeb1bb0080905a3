"""R2 and accuracy of rows that are read in blocks, here or by Dask workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._core.types import Array, Float64Array, Rows
from ..rows import Block, CollectionRows, TrainingRows


@dataclass
class ResidualSums:
    """Sums for R2."""

    weight: float
    mean: Float64Array
    """Mean of y."""
    total: Float64Array
    """Sum of (y - mean)^2."""
    residual: Float64Array
    """Sum of (y - prediction)^2."""

    @classmethod
    def of(cls, block: Block, predict: Callable[[Rows], Array]) -> Self:
        """Return the sums of a block."""
        weight = block.weights
        mean = weight @ block.Y / weight.sum()
        errors = block.Y - predict(block.X).reshape(block.Y.shape)
        return cls(float(weight.sum()), mean, weight @ (block.Y - mean) ** 2, weight @ errors**2)

    def merge(self, other: Self) -> Self:
        """Add other rows: the total is the sum of squares within both sets of rows plus that between their means."""
        weight = self.weight + other.weight
        shift = other.mean - self.mean
        self.total = self.total + other.total + shift**2 * (self.weight * other.weight / weight)
        self.mean = self.mean + shift * (other.weight / weight)
        self.residual = self.residual + other.residual
        self.weight = weight
        return self

    def shrink(self, factor: float) -> None:
        """Do nothing: scores do not forget."""

    @property
    def score(self) -> float:
        """Mean of R2 = 1 - residual / total over responses; for a constant one, 1 if predicted exactly, else 0."""
        exact = np.where(self.residual == 0, 1.0, 0.0)
        is_constant = self.total == 0
        return float(np.mean(np.where(is_constant, exact, 1 - self.residual / np.where(is_constant, 1, self.total))))


@dataclass
class AccuracySums:
    """Sums for the accuracy: weights of all rows, and of those classified correctly."""

    weight: float
    correct: float

    @classmethod
    def of(cls, block: Block, predict: Callable[[Rows], Array]) -> Self:
        """Return the sums of a block, where ``predict`` returns class indices."""
        weight = block.weights
        return cls(float(weight.sum()), float(weight @ (predict(block.X) == block.classes)))

    def merge(self, other: Self) -> Self:
        """Add other rows."""
        self.weight += other.weight
        self.correct += other.correct
        return self

    def shrink(self, factor: float) -> None:
        """Do nothing: scores do not forget."""

    @property
    def score(self) -> float:
        """The accuracy."""
        return self.correct / self.weight


def score_of(rows: TrainingRows, kind: type[ResidualSums | AccuracySums], predict: Callable[[Rows], Array]) -> float:
    """Return the score of predictions, without storing them."""

    def work(block: Block) -> Any:
        return kind.of(block, predict)

    if isinstance(rows, CollectionRows):
        total, _ = next(rows.parts(work, 1.0, "score"))
    else:
        blocks = rows.tracked_blocks("one read")
        total = work(next(blocks))
        for block in blocks:
            total.merge(work(block))
    return float(total.score)
