"""Solvers: PLS factors from a state, or from data that is read again."""

from .importance import column_lengths, importance
from .multipass import Rereading
from .pls import Condensed, Factors, GramAction, solve_pls
from .scaling import Scaling, solve_scaled
from .sensitivity import subspace_errors

__all__ = [
    "Condensed",
    "Factors",
    "GramAction",
    "Rereading",
    "Scaling",
    "column_lengths",
    "importance",
    "solve_pls",
    "solve_scaled",
    "subspace_errors",
]
