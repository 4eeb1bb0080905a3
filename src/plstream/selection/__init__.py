"""Feature selection: scores of features, and selectors that keep the best of them."""

from .inffs import InfFS, InfFSS, InfFSU

__all__ = ["InfFS", "InfFSS", "InfFSU"]
