"""Monitoring: whether new rows, or a stream as a whole, differ from the training samples of a model."""

from .drift import DriftTracker
from .monitor import Monitor

__all__ = ["DriftTracker", "Monitor"]
