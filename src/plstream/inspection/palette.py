"""Colours that are told apart by people who do not see red or green, on white and on black paper.

Ink, paper, faint and grid follow the page that a figure is part of (see ``report.py``).
"""

from .report import FAINT, GRID, INK, PAPER

CLASSES = ("#0460bd", "#d88700", "#0faaac", "#9f480a", "#614cff", "#726440", "#3aa2d5", "#a39b60", "#1d7168", INK)
CLASS_MARKERS = ("o", "^", "s", "v", "D", "P", "X", "h", "<", ">")

__all__ = ["CLASSES", "CLASS_MARKERS", "FAINT", "GRID", "INK", "PAPER"]
