"""HTML reports that are one file each: of a model, and of what it makes of data."""

from .html import Page, Section
from .model_page import model_report

__all__ = ["Page", "Section", "model_report"]
