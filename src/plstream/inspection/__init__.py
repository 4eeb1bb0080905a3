"""Inspection: what was learnt or measured, in pictures and pages, and whether new rows are like those before."""

from .drift import DriftTracker
from .model_page import model_report
from .monitoring import Monitor
from .plots import (
    CoefficientsDisplay,
    CrossValidationDisplay,
    ExplainedVarianceDisplay,
    LoadingsDisplay,
    MonitoringDisplay,
    PredictionDisplay,
    ScoresDisplay,
    VIPDisplay,
)
from .report import Page, Section

<<<<<<< HEAD
__all__ = ["DriftTracker", "Monitor", "Page", "Section", "model_report"]
=======
__all__ = [
    "CoefficientsDisplay",
    "CrossValidationDisplay",
    "DriftTracker",
    "ExplainedVarianceDisplay",
    "LoadingsDisplay",
    "Monitor",
    "MonitoringDisplay",
    "Page",
    "PredictionDisplay",
    "ScoresDisplay",
    "Section",
    "VIPDisplay",
]
>>>>>>> 75154f7212bba27952e971423cc9f29f5102e29c
