"""Inspection: what was learnt or measured, on pages to be looked at."""

from .report import Page, Section

__all__ = ["Page", "Section"]
