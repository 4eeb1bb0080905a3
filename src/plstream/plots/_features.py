"""Values of features: a spectrum where there are many or their names are numbers, bars where there are few."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.types import Array, Float64Array
from ._axes import SMALL, WIDTH, Display, label, legend, short
from ._many import LINE_BINS, thin
from .palette import CLASSES, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More bars would have no room for their names.
MOST_BARS = 30
_BAR_HEIGHT = 0.24
_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(nm|µm|um|cm-1|cm\^-1|1/cm|Hz|kHz|eV|m/z)?\s*")
_DASHES = ("-", "--", ":", "-.")


class FeatureDisplay(Display):
    """Values of features, one line or colour for each of a few things.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_features,)
        What is drawn, by its name in the legend.
    feature_names : array-like of shape (n_features,)
        Names of the features. If all are numbers, with or without a unit, and in order, the values are drawn at these.
    ylabel : str
        What the values are.
    """

    def __init__(self, values: Mapping[str, Float64Array], feature_names: Any, ylabel: str) -> None:
        self.values = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        self.feature_names: Array = np.asarray(feature_names, dtype=object)
        self.ylabel = ylabel

    def plot(self, ax: Axes | None = None, *, xlabel: str | None = None, title: str = "") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        xlabel : str, default=None
            What the features are, such as "Wavelength, nm". By default it is guessed from their names.
        title : str, default=""
            Of the picture.

        Returns
        -------
        display : object
            The display itself, with ``ax_`` and ``figure_``.
        """
        found, at = positions(self.feature_names)
        if found or len(self.feature_names) > MOST_BARS:
            self._spectrum(self._begin(ax), at)
            labels = xlabel or found or "Feature", self.ylabel
        else:
            self._bars(self._begin(ax, (WIDTH, self._height_of_bars())))
            labels = self.ylabel, xlabel or ""
        above = legend(self.ax_) if len(self.values) > 1 else 0
        label(self.ax_, *labels, title, above)
        return self

    def _spectrum(self, ax: Axes, at: Float64Array) -> None:
        ax.axhline(0, color=FAINT, linewidth=0.8)
        for i, (name, value) in enumerate(self.values.items()):
            look: dict[str, Any] = {
                "color": CLASSES[i % len(CLASSES)],
                "linestyle": _DASHES[i // len(CLASSES) % len(_DASHES)],
            }
            ax.plot(*thin(at, value), linewidth=1.4 if len(at) < 2 * LINE_BINS else 0.7, label=short(name), **look)
        ax.margins(x=0.01)
        ax.locator_params(axis="x", nbins=8)
        if len(at) > 10_000:
            ax.xaxis.set_major_formatter("{x:,.0f}")

    def _bars(self, ax: Axes) -> None:
        n, k = len(self.feature_names), len(self.values)
        height = 0.8 / k
        for i, (name, value) in enumerate(self.values.items()):
            places = np.arange(n) + (i - (k - 1) / 2) * height
            ax.barh(places, value, height, color=CLASSES[i % len(CLASSES)], label=short(name))
        ax.axvline(0, color=FAINT, linewidth=0.8)
        ax.locator_params(axis="x", nbins=6)
        ax.set_yticks(range(n), [short(name) for name in self.feature_names])
        ax.set_ylim(n - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)

    def _height_of_bars(self) -> float:
        return 0.9 + _BAR_HEIGHT * len(self.feature_names) * max(1.0, 0.6 * len(self.values))

    def _name_highest(self, which: NDArray[np.intp]) -> None:
        """Write the names of some features above a spectrum with one line."""
        (value,) = self.values.values()
        found, at = positions(self.feature_names)
        if not found and len(self.feature_names) <= MOST_BARS:
            return
        # Names stand upright on peaks, for which there must be room.
        low, high = self.ax_.get_ylim()
        self.ax_.set_ylim(low, high + 0.25 * (high - low))
        for i in which:
            self.ax_.annotate(
                short(self.feature_names[i], 14),
                (at[i], value[i]),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                rotation=90,
                fontsize=SMALL - 1,
                color=INK,
            )


def positions(names: Array) -> tuple[str, Float64Array]:
    """Return what the axis of features is called, "" if it has no numbers but those of the columns; and where they are.

    Examples
    --------
    >>> from plstream.plots._features import positions
    >>> positions(["1100 nm", "1102 nm"])
    ('Wavelength, nm', array([1100., 1102.]))
    >>> positions(["fat", "water"])
    ('', array([0., 1.]))
    """
    matches = [_NUMBER.fullmatch(str(name)) for name in names]
    index = np.arange(len(names), dtype=np.float64)
    if len(names) < 2 or not all(matches):
        return "", index
    numbers = np.array([float(match[1]) for match in matches if match])
    steps = np.diff(numbers)
    # Columns that are called 0, 1, 2 have no names.
    if not ((steps > 0).all() or (steps < 0).all()) or np.array_equal(numbers, index):
        return "", index
    units = {match[2] for match in matches if match}
    unit = units.pop() if len(units) == 1 else None
    kinds = {"cm-1": "Wavenumber", "cm^-1": "Wavenumber", "1/cm": "Wavenumber", "Hz": "Frequency", "kHz": "Frequency"}
    kinds |= {"eV": "Energy", "m/z": "Mass to charge"}
    name = kinds.get(unit or "", "Wavelength")
    return f"{name}, {unit}" if unit else name, numbers


def apart(which: NDArray[np.intp], at: Float64Array, n: int, share: float = 0.05) -> NDArray[np.intp]:
    """Return the first n of some features, without those too close to one before for their names to have room."""
    gap = share * float(np.ptp(at))
    kept: list[int] = []
    for i in which:
        if len(kept) < n and all(abs(at[i] - at[j]) >= gap for j in kept):
            kept.append(int(i))
    return np.array(kept, dtype=np.intp)
