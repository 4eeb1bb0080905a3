"""Estimators: scikit-learn's interface on top of states and solvers."""

from .classifier import IncrementalPLSClassifier
from .cv import IncrementalPLSCV
from .incremental_pls import IncrementalPLS

__all__ = ["IncrementalPLS", "IncrementalPLSCV", "IncrementalPLSClassifier"]
