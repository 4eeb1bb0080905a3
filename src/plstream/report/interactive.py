"""Figures that a reader can point at and zoom into: what Plotly draws in a browser, with all it needs in the page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._core.errors import import_optional

# Enough for a drawing. More digits would make pages several times as large.
_DIGITS = 6
_LONGEST_TEXT = 60


class View(NamedTuple):
    """One of the drawings that a figure can show: traces and layout as in Plotly's JavaScript library.

    Colours are names of the page's variables, such as ``--ink``, and titles of axes are plain strings.
    """

    name: str
    data: list[dict[str, Any]]
    layout: Mapping[str, Any]


def numbers(values: ArrayLike) -> list[float | None]:
    """Return numbers with the digits that a drawing needs, and None for what is no number.

    Examples
    --------
    >>> from plstream.report.interactive import numbers
    >>> numbers([1 / 3, 2e10 / 3, float("nan")])
    [0.333333, 6666670000.0, None]
    """
    array = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in array.tolist()]


def label(text: object) -> str:
    """Return text as Plotly shows it as it is: it takes tags and entities for markup.

    Examples
    --------
    >>> from plstream.report.interactive import label
    >>> label("<b>water & oil</b>")
    '&lt;b&gt;water &amp; oil&lt;/b&gt;'
    """
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())
    return escape(plain if len(plain) <= _LONGEST_TEXT else f"{plain[: _LONGEST_TEXT - 1]}…", quote=False)


def as_json(views: Iterable[View]) -> str:
    """Return views as JSON without any sign that could end the element it is in."""
    text = json.dumps([view._asdict() for view in views], allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def scripts() -> tuple[str, ...]:
    """Return what draws figures: the library and what calls it. Neither loads anything.

    Raises
    ------
    ImportError
        If Plotly is not installed.
    """
    library = import_optional("plotly.offline", "A page with interactive figures", "report").get_plotlyjs()
    own = files(__package__).joinpath("drawing.js").read_text(encoding="utf-8")
    # As browsers read it, for they compare hashes.
    return tuple(text.replace("\r\n", "\n").replace("</script", "<\\/script") for text in (library, own))


def hash_of(script: str) -> str:
    """Return the hash by which a page allows a script, and no other."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
