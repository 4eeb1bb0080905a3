"""Settings shared by all experiments."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Settings of the experiments; results with different ones are not comparable."""

    # Maximum number of components to try.
    components: int = 10
    # Share of the training rows on which the number of components is chosen, out of at most this many rows.
    validation: float = 0.1
    choice_rows: int = 100_000
    # Classifier of scores: "svm" or "perceptron"; "auto" is the former for two classes and the latter for more.
    classifier: str = "auto"
    # C of the linear SVM, as in the authors' code.
    svm_c: float = 0.1
    # Layers of the perceptron, which the paper does not describe; its learning rate, maximum number of epochs, and
    # number of epochs without improvement on a held-out tenth of the rows after which it stops. (On digits,
    # scikit-learn's rate of 0.001 takes twice as long and is less accurate.)
    hidden: tuple[int, ...] = (100,)
    rate: float = 0.005
    epochs: int = 100
    patience: int = 5
    # Shrinkage of the linear discriminants that replace the perceptron when dozens of classifiers are trained.
    shrinkage: float = 0.001
    # Values that are tuned after the number of components; experiments without tuning use the first. The number L of
    # principal components of IPLS, and the steps of SGDPLS, as in its paper and as released. The paper states neither.
    ipls_directions: tuple[int, ...] = (20, 10, 40)
    sgdpls_rates: tuple[float, ...] = (0.3, 0.1, 1.0)
    sgdpls_released_rates: tuple[float, ...] = (0.001, 0.0001, 0.01)
    # Number of blocks of the stream.
    blocks: int = 20
    # Shares of features to keep.
    shares: tuple[float, ...] = (0.1, 0.15, 0.2, 0.5)
    # With more features than this, the linear SVM of features stops at this tolerance. With its default, 0.0001, it
    # would take hours per split for thousands of features.
    many_features: int = 1000
    early_tolerance: float = 0.1
    # Components of the models for VIP: 2 is best in the paper.
    vip_components: int = 2
    # Timed updates, components of the timed models, steps of SGDPLS per row (100 or more in the paper), and rows that
    # a model is trained on before it is timed.
    runs: int = 30
    time_components: int = 4
    steps: int = 100
    warm_rows: int = 200
    # Maximum number of points of a projection.
    points: int = 500

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as in JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
