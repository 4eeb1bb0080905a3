"""Estimators: scikit-learn's interface, composed of rows, states, solutions and heads."""

from .classifier import IncrementalPLSClassifier
from .cross_validation import IncrementalPLSClassifierCV, IncrementalPLSCV
from .pipeline import StreamingPipeline
from .regression import IncrementalPLS

__all__ = [
    "IncrementalPLS",
    "IncrementalPLSCV",
    "IncrementalPLSClassifier",
    "IncrementalPLSClassifierCV",
    "StreamingPipeline",
]
