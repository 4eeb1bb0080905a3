"""Solvers: PLS factors from a state, or from data that is read again."""

from ..pls import Factors, GramAction, LossyGramAction, solve_pls
from .completion import FactorModel, Gaps
from .few_reads import CorrectedGram, read_few_times
from .fold_reads import FoldGrams, FoldReads
from .held_out import held_out_errors
from .joint import JointGramAction, solve_jointly
from .multipass import Journal, JournalError, MultipassGram
from .solution import Scaling, solve_scaled
from .vip import column_lengths, importance

__all__ = [
    "CorrectedGram",
    "FactorModel",
    "Factors",
    "FoldGrams",
    "FoldReads",
    "Gaps",
    "GramAction",
    "JointGramAction",
    "Journal",
    "JournalError",
    "LossyGramAction",
    "MultipassGram",
    "Scaling",
    "column_lengths",
    "held_out_errors",
    "importance",
    "read_few_times",
    "solve_jointly",
    "solve_pls",
    "solve_scaled",
]
