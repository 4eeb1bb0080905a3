"""Plots of models and data: displays compute and hold the values, matplotlib and Plotly draw them."""

from .components import CrossValidationDisplay, ExplainedVarianceDisplay
from .features import CoefficientsDisplay, FeatureDisplay, LoadingsDisplay, VIPDisplay
from .monitoring import ContributionsDisplay, MonitoringDisplay
from .prediction import PredictionDisplay
from .scores import ScoresDisplay

__all__ = [
    "CoefficientsDisplay",
    "ContributionsDisplay",
    "CrossValidationDisplay",
    "ExplainedVarianceDisplay",
    "FeatureDisplay",
    "LoadingsDisplay",
    "MonitoringDisplay",
    "PredictionDisplay",
    "ScoresDisplay",
    "VIPDisplay",
]
