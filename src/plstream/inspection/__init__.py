"""Inspection: what was learnt or measured, in pictures and pages; and monitors, from ``plstream.monitoring``."""

from ..monitoring import DriftTracker, Monitor
from .model_page import model_report
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
    "model_report",
]
