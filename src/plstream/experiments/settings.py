"""What the paper leaves open, or fixes: the numbers that all experiments share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Numbers of the experiments; results of others are not comparable.

    Attributes
    ----------
    components : int
        Largest number of components that is tried (paper: 10).
    validation : float
        Share of the training rows that the number of components is chosen on (paper: 0.1).
    svm_c : float
        C of the linear SVM (the authors' code: 0.1).
    hidden : tuple of int
        Layers of the perceptron, which the paper does not describe.
    rate, epochs, patience : float, int and int
        Its learning rate, the most epochs, and those after which it stops if the accuracy on a tenth of its rows, set
        aside, has not improved. (On digits, scikit-learn's rate of 0.001 takes twice as long and is less accurate.)
    shrinkage : float
        Of the linear discriminants that stand for the perceptron where there are dozens to train.
    ipls_directions : int
        Principal components that IPLS keeps, L.
    blocks : int
        Blocks of the stream (paper: 20).
    shares : tuple of float
        Shares of features that are kept (paper: 0.1, 0.15, 0.2, 0.5).
    many_features, early_tolerance : int and float
        With more features than this, the linear SVM of features stops at this tolerance. At its own, 0.0001, it would
        take hours per split for thousands of features of thousands of rows.
    vip_components : int
        Components of the models that VIP is taken from (2 is best in the paper).
    runs, time_components, steps : int
        Rows that an update is timed with (paper: 30), components (paper: 4), and steps of SGDPLS with each row (paper:
        100 or more).
    warm_rows : int
        Rows that a model has learnt before it is timed.
    points : int
        Largest number of points of a projection.
    """

    components: int = 10
    validation: float = 0.1
    svm_c: float = 0.1
    hidden: tuple[int, ...] = (100,)
    rate: float = 0.005
    epochs: int = 100
    patience: int = 5
    shrinkage: float = 0.001
    ipls_directions: int = 20
    blocks: int = 20
    shares: tuple[float, ...] = (0.1, 0.15, 0.2, 0.5)
    many_features: int = 1000
    early_tolerance: float = 0.1
    vip_components: int = 2
    runs: int = 30
    time_components: int = 4
    steps: int = 100
    warm_rows: int = 200
    points: int = 500

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name, as JSON has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
