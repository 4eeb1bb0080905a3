"""Axes that look like one family, whatever the settings of matplotlib are: nothing here is set but on the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..palette import FAINT, GRID, INK, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 5.2, 3.5
"""Of a figure, in inches."""
TEXT, SMALL = 9.5, 8.5
"""Sizes of letters, in points."""
# More points than these are drawn as pixels, even in a file of SVG.
_VECTOR_POINTS = 2000


class Display:
    """What all pictures share: the axes that they were last drawn in.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    """

    size: ClassVar[tuple[float, float]] = (WIDTH, HEIGHT)
    ax_: Axes
    figure_: Figure

    def _begin(self, ax: Any, size: tuple[float, float] | None = None) -> Axes:
        """Take the axes given, or new ones, and dress them."""
        if ax is None:
            _, ax = _plt().subplots(figsize=size or self.size, layout="constrained", facecolor=PAPER)
        self.ax_, self.figure_ = ax, ax.figure
        dress(ax)
        return self.ax_


def _plt() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib, which is not installed: pip install 'plstream[plot]'.") from None
    return plt


def dress(ax: Axes) -> None:
    """Give axes the common look."""
    ax.set_facecolor(PAPER)
    ax.set_axisbelow(True)
    ax.grid(visible=True, color=GRID, linewidth=0.7)
    for side, spine in ax.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_edgecolor(FAINT)
    ax.tick_params(color=FAINT, labelcolor=INK, labelsize=SMALL)


def label(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Write what the axes and the picture show."""
    ax.set_xlabel(x, fontsize=TEXT, color=INK)
    ax.set_ylabel(y, fontsize=TEXT, color=INK)
    if title:
        ax.set_title(title, fontsize=TEXT + 0.5, color=INK, loc="left", fontweight="bold")


def legend(ax: Axes, title: str = "", *, beside: bool = False) -> None:
    """Have a legend, beside the axes if there may be many entries."""
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if beside else {"loc": "best"}
    box = ax.legend(
        frameon=not beside,
        framealpha=0.85,
        edgecolor="none",
        facecolor=PAPER,
        fontsize=SMALL,
        labelcolor=INK,
        title=title or None,
        title_fontsize=SMALL,
        handletextpad=0.5,
        borderaxespad=0.3,
        **where,
    )
    box.get_title().set_color(INK)
    box.set_in_layout(beside)


def points(n: int) -> dict[str, Any]:
    """Return the look of n points: smaller and more transparent the more there are."""
    size, alpha = (26, 0.9) if n <= 100 else (16, 0.75) if n <= 1000 else (7, 0.5)
    return {"s": size, "alpha": alpha, "linewidths": 0, "rasterized": n > _VECTOR_POINTS}


def short(name: Any, length: int = 24) -> str:
    """Return a name that fits beside the axes, without what matplotlib would take for mathematics."""
    text = str(name).replace("\n", " ")
    text = text if len(text) <= length else f"{text[: length - 1]}…"
    return text.replace("$", r"\$")
