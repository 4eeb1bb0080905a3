"""Solvers: PLS factors from a state, or from data that is read again."""

from ..pls import Factors, GramAction, LossyGramAction, solve_pls
from .held_out import held_out_errors
from .multipass import Journal, JournalError, MultipassGram
from .scaling import Scaling, solve_scaled
from .vip import column_lengths, importance

__all__ = [
    "Factors",
    "GramAction",
    "Journal",
    "JournalError",
    "LossyGramAction",
    "MultipassGram",
    "Scaling",
    "column_lengths",
    "held_out_errors",
    "importance",
    "solve_pls",
    "solve_scaled",
]
