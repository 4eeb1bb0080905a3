"""Inspection: what was learnt or measured, on pages to be looked at, and whether new rows are like those before."""

from .drift import DriftTracker
from .model_page import model_report
from .monitoring import Monitor
from .report import Page, Section

__all__ = ["DriftTracker", "Monitor", "Page", "Section", "model_report"]
