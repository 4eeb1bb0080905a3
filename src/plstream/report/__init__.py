"""Self-contained HTML reports about a model and its results on data."""

from .html import Page, Section
from .model import model_report

__all__ = ["Page", "Section", "model_report"]
