"""Feature selection: scores of features, selectors that keep the best of them, and a comparison of selectors."""

from .compare import SelectorComparison, compare_selectors, overlap, stability
from .ilfs import ILFS
from .inffs import InfFS, InfFSS, InfFSU

__all__ = ["ILFS", "InfFS", "InfFSS", "InfFSU", "SelectorComparison", "compare_selectors", "overlap", "stability"]
