"""Solvers: PLS factors from a state, or from data that is read again."""

from .multipass import Rereading
from .pls import Factors, GramAction, solve_pls
from .scaling import Scaling, solve_scaled

__all__ = ["Factors", "GramAction", "Rereading", "Scaling", "solve_pls", "solve_scaled"]
