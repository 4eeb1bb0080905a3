"""The experiments of the CIPLS paper, one file each: cells, cost, tables, figures and claims.

A. Jordao, M. Lie, V. H. C. de Melo and W. R. Schwartz, "Covariance-free Partial Least Squares: An Incremental
Dimensionality Reduction Method", IEEE Winter Conference on Applications of Computer Vision, 2021. Reported accuracies
are in per cent, None where the paper has a dash. Its figures are images without numbers.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..experiment import Experiment

MODULES = {
    "accuracy": "accuracy",
    "components": "components",
    "higher-order": "higher_order",
    "time": "timing",
    "streaming": "streaming",
    "selection": "selection",
    "projection": "projection",
}
"""The module of each experiment, by name, in the order of the paper. Imported on demand, because this is slow."""


@cache
def experiments() -> dict[str, Experiment]:
    """Return the experiments by name, in the order of the paper.

    Examples
    --------
    >>> from plstream.experiments.paper import experiments
    >>> experiments()["time"].title
    'Time to learn one more row'
    """
    return {name: import_module(f"{__name__}.{file}").EXPERIMENT for name, file in MODULES.items()}
