"""Feature selection: scores of features, selectors that keep the best of them, and a comparison of selectors."""

from .compare import SelectorComparison, compare_selectors, overlap, stability
from .ilfs import ILFS
from .inffs import InfFS, InfFSS, InfFSU
from .vip import VIPSelector, vip_scores

__all__ = [
    "ILFS",
    "InfFS",
    "InfFSS",
    "InfFSU",
    "SelectorComparison",
    "VIPSelector",
    "compare_selectors",
    "overlap",
    "stability",
    "vip_scores",
]
