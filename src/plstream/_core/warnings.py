"""Warnings that refer to the line of the user's code."""

from __future__ import annotations

import sys
import warnings

from .urls import redacted


def warn_user(message: str) -> None:
    """Warn at the first caller outside this package, scikit-learn's wrappers and contexts."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in {"plstream", "sklearn", "contextlib"}:
        level, frame = level + 1, frame.f_back
    warnings.warn(redacted(message), stacklevel=level + 1)
