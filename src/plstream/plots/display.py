"""The base class of all displays, and their style in matplotlib: only axes are changed, no global settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._core.errors import import_optional
from .palette import FAINT, GRID, INK, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 5.2, 3.5
"""Size of a figure, in inches."""
TEXT, SMALL = 9.5, 8.5
"""Font sizes, in points."""
LIMIT: dict[str, Any] = {"color": INK, "linewidth": 1.1, "linestyle": "--"}
"""Style of limits and thresholds."""
_ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0)}
# More points than this are rasterized, even in an SVG file.
_VECTOR_POINTS = 2000


class Display:
    """Base class of all displays.

    A display computes its values in ``from_estimator`` and holds them as attributes. ``plot`` draws them with
    matplotlib, and ``plotly`` returns the same figure as data for Plotly. The first two return the display.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Their figure.
    """

    size: ClassVar[tuple[float, float]] = (WIDTH, HEIGHT)
    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None, *, title: str = "") -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        title : str, default=""
            Title of the plot.
        """
        self._draw(self._begin(ax), title)
        return self

    def _draw(self, ax: Axes, title: str) -> None:
        raise NotImplementedError

    def _begin(self, ax: Any, size: tuple[float, float] | None = None) -> Axes:
        """Return the given axes, or new ones, in the common style."""
        if ax is None:
            plt = import_optional("matplotlib.pyplot", "A plot", "plot")
            figure, ax = plt.subplots(figsize=size or self.size, layout="constrained", facecolor=PAPER)
            figure.get_layout_engine().set(w_pad=0.09, h_pad=0.09)
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_facecolor(PAPER)
        ax.set_axisbelow(True)
        ax.grid(visible=True, color=GRID, linewidth=0.7)
        for side, spine in ax.spines.items():
            spine.set_visible(side in {"left", "bottom"})
            spine.set_edgecolor(FAINT)
        ax.tick_params(which="both", color=FAINT, labelcolor=ink(ax), labelsize=SMALL)
        return self.ax_


def ink(ax: Axes) -> str:
    """Return the text colour for axes, light if their figure is dark."""
    from matplotlib.colors import rgb_to_hsv, to_rgba

    red, green, blue, alpha = to_rgba(ax.figure.get_facecolor())
    is_dark = alpha > 0.5 and rgb_to_hsv((red, green, blue))[2] < 0.5
    return PAPER if is_dark else INK


def label(ax: Axes, x: str, y: str, title: str = "", above: int = 0) -> None:
    """Set the labels of axes, and a title above ``above`` lines of a legend."""
    ax.set_xlabel(x, fontsize=TEXT, color=ink(ax))
    ax.set_ylabel(y, fontsize=TEXT, color=ink(ax))
    if title:
        look: dict[str, Any] = {"fontsize": TEXT + 0.5, "color": ink(ax), "loc": "left", "fontweight": "bold"}
        ax.set_title(title, pad=6 + 14.5 * above, **look)


def legend(ax: Axes, title: str = "", *, beside: bool = False) -> int:
    """Add a legend above the axes, or to their right if it is long, and return its number of lines above."""
    handles, names = ax.get_legend_handles_labels()
    # In inches: the total width, a handle with its gaps, and a letter.
    columns = max(1, min(4, int(4.1 / (0.5 + 0.075 * max(map(len, names))))))
    n_lines = -(-len(names) // columns)
    beside = beside or n_lines > 2
    corner: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if beside else _ABOVE
    box = ax.legend(
        handles,
        names,
        # In a dark figure, its lines may be dark too.
        frameon=ink(ax) != INK,
        facecolor=PAPER,
        fontsize=SMALL,
        labelcolor=INK,
        title=title or None,
        title_fontsize=SMALL,
        handletextpad=0.5,
        columnspacing=1.2,
        borderaxespad=0.1,
        ncols=1 if beside else columns,
        alignment="left",
        **corner,
    )
    box.get_title().set_color(INK)
    for handle in box.findobj(lambda artist: hasattr(artist, "set_sizes")):
        handle.set(sizes=[26], alpha=1)
    return 0 if beside else n_lines


def points(n: int) -> dict[str, Any]:
    """Return the style of n points: smaller and more transparent for more points."""
    size, alpha = (26, 0.9) if n <= 100 else (16, 0.75) if n <= 1000 else (7, 0.5)
    return {"s": size, "alpha": alpha, "linewidths": 0, "rasterized": n > _VECTOR_POINTS}


def short(name: Any, length: int = 24) -> str:
    """Return a name that fits next to the axes, without mathtext; long names are cut in the middle."""
    text = str(name).replace("\n", " ")
    text = text if len(text) <= length else f"{text[: length // 2]}…{text[1 - (length - length // 2) :]}"
    return text.replace("$", r"\$")


def sampled_title(title: str, n_drawn: int, n: int) -> str:
    """Return a title that states how many rows are drawn, if not all are."""
    note = f"{n_drawn:,} of {n:,} rows drawn" if n_drawn < n else ""
    return "\n".join(filter(None, [title, note]))
