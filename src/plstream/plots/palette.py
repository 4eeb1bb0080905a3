"""Colours that people who do not see red or green can distinguish, on white and on black paper.

Ink, paper, faint and grid follow the page that a figure is part of (see ``report/html.py``).
"""

INK, PAPER, FAINT, GRID = "#1b1f24", "#ffffff", "#5c6670", "#d7dce1"
CLASSES = ("#0460bd", "#d88700", "#0faaac", "#9f480a", "#614cff", "#726440", "#3aa2d5", "#a39b60", "#1d7168", INK)
CLASS_MARKERS = ("o", "^", "s", "v", "D", "P", "X", "h", "<", ">")
