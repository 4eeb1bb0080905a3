"""Monitoring: whether new rows, and a stream as a whole, are like those that a model was made from."""

from .drift import DriftTracker
from .monitor import Monitor

__all__ = ["DriftTracker", "Monitor"]
