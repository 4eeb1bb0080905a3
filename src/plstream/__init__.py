"""Partial least squares for streams and for data larger than memory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core.metrics import figures_of_merit
    from ._core.progress import show_progress
    from .data import open_source
    from .estimators import (
        IncrementalPLS,
        IncrementalPLSClassifier,
        IncrementalPLSClassifierCV,
        IncrementalPLSCV,
        StreamingPipeline,
    )
    from .files import load, save
    from .online import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
    from .selection import ILFS, InfFS, InfFSS, InfFSU, VIPSelector, vip_scores

__version__ = "0.2.0"

__all__ = [
    "CCIPCA",
    "CIPLS",
    "ILFS",
    "IPLS",
    "OLPLS",
    "SGDPLS",
    "IncrementalLDA",
    "IncrementalPLS",
    "IncrementalPLSCV",
    "IncrementalPLSClassifier",
    "IncrementalPLSClassifierCV",
    "InfFS",
    "InfFSS",
    "InfFSU",
    "StreamingPipeline",
    "VIPSelector",
    "figures_of_merit",
    "load",
    "open_source",
    "save",
    "show_progress",
    "vip_scores",
]

# Each name is imported when it is first used: `import plstream` costs no more than what is needed of it.
_HOME = {
    "CCIPCA": "online",
    "CIPLS": "online",
    "ILFS": "selection",
    "IPLS": "online",
    "IncrementalLDA": "online",
    "IncrementalPLS": "estimators",
    "IncrementalPLSCV": "estimators",
    "IncrementalPLSClassifier": "estimators",
    "IncrementalPLSClassifierCV": "estimators",
    "InfFS": "selection",
    "InfFSS": "selection",
    "InfFSU": "selection",
    "OLPLS": "online",
    "SGDPLS": "online",
    "StreamingPipeline": "estimators",
    "VIPSelector": "selection",
    "figures_of_merit": "_core.metrics",
    "load": "files",
    "open_source": "data",
    "save": "files",
    "show_progress": "_core.progress",
    "vip_scores": "selection",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'plstream' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
