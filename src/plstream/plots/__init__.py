"""Pictures of models and of what they make of rows, in scikit-learn's Display convention on matplotlib."""

from .components import CrossValidationDisplay, ExplainedVarianceDisplay
from .features import CoefficientsDisplay, LoadingsDisplay, VIPDisplay
from .monitoring import MonitoringDisplay
from .prediction import PredictionDisplay
from .scores import ScoresDisplay

__all__ = [
    "CoefficientsDisplay",
    "CrossValidationDisplay",
    "ExplainedVarianceDisplay",
    "LoadingsDisplay",
    "MonitoringDisplay",
    "PredictionDisplay",
    "ScoresDisplay",
    "VIPDisplay",
]
