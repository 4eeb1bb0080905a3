"""Monitoring: whether new rows, or a stream as a whole, differ from the training samples of a model."""

from .drift import DriftTracker
from .intervals import PredictionInterval
from .monitor import Monitor

__all__ = ["DriftTracker", "Monitor", "PredictionInterval"]
