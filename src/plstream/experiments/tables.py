"""Tables with one row per method, as text, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..online import IPLS
from .inference import Difference, holm, interval, paired_difference
from .methods import METHODS, TITLES
from .results import Cell, TaskResults

NOTHING = "-"
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "%_&#${}"}
    | {character: f"${character}$" for character in "|<>"}
    | {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\textasciitilde{}", "±": r"$\pm$", "µ": r"$\mu$"}
)


@dataclass
class Table:
    """A table of strings with notes."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # The name of its task, empty for all tasks.
    task: str = ""

    def as_text(self) -> str:
        """Return lines for a terminal."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [
            "  ".join(
                entry.ljust(width) if i == 0 else entry.rjust(width)
                for i, (entry, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (self.header, *self.rows)
        ]
        return "\n".join([self.title, lines[0], "-" * len(lines[0]), *lines[1:], *self.notes, ""])

    def as_markdown(self) -> str:
        """Return a table in Markdown."""
        rows = [self.header, ["---"] + ["---:"] * (len(self.header) - 1), *self.rows]
        lines = ["| " + " | ".join(entry.replace("|", "\\|") for entry in row) + " |" for row in rows]
        return "\n".join([f"## {self.title}", "", *lines, "", *(f"- {note}" for note in self.notes), ""])

    def as_latex(self) -> str:
        """Return a table in LaTeX."""
        rows = [" & ".join(entry.translate(_LATEX) for entry in row) + r" \\" for row in (self.header, *self.rows)]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{' '.join([self.title + '.', *self.notes]).translate(_LATEX)}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}",
                r"\hline",
                rows[0],
                r"\hline",
                *rows[1:],
                r"\hline",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def table_of(
    found: TaskResults,
    header: list[str],
    row: Callable[[str, list[Cell]], list[str]],
    notes: Iterable[str] = (),
    paper: Callable[[str], list[str]] = lambda _: [],
) -> Table:
    """Return the table of an experiment on a task: one row per method that was run or skipped, and notes.

    The header omits the first column. ``row`` returns the entries of a method, given its cells; the entries of
    ``paper`` are appended, also for skipped methods.
    """
    experiment, skipped, settings = found.experiment, found.found["skipped"], found.found["settings"]
    title = f"{experiment.title}: {found.task['title']} ({found.name})"
    table = Table(title, ["Method", *header], task=found.name)
    by_method, missing = found.by_method(), []
    for method in experiment.methods:
        if method in by_method:
            table.rows.append([TITLES[method], *row(method, by_method[method]), *paper(method)])
        elif method in skipped:
            reported = paper(method)
            table.rows.append([TITLES[method], *[NOTHING] * (len(header) - len(reported)), *reported])
        else:
            missing.append(TITLES[method])
    if "classifier" in settings:
        table.notes.append(f"Classifier: {settings['classifier']}.")
    if "note" in settings:
        table.notes.append(f"Only {settings['note']}.")
    limits = {cell["method"]: cell["limited"] for cell in found.cells if "limited" in cell}
    table.notes += [f"{TITLES[method]}: {why}." for reasons in (skipped, limits) for method, why in reasons.items()]
    for method, cells in by_method.items():
        if tuned := sorted({cell["tuned"] for cell in cells if "tuned" in cell}):
            what = "L" if METHODS[method].estimator is IPLS else "the step"
            table.notes.append(f"{TITLES[method]}: {what} by validation, {', '.join(f'{value:g}' for value in tuned)}.")
    if missing:
        table.notes.append(f"Not requested: {', '.join(missing)}.")
    table.notes += notes
    return table


def format_p(p: float) -> str:
    """Format a p-value with three digits."""
    return NOTHING if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_values(
    values: Mapping[str, Mapping[int, float]], other: str, difference: Callable[[Any, Any], Difference]
) -> dict[str, list[str]]:
    """Return two formatted p-values of the difference of each method from another one.

    The first is that of a plain t-test, the second that of ``difference``, corrected by Holm's method for all methods.
    """
    tested = [method for method in values if method != other]
    pairs = [(values[method], values.get(other, {})) for method in tested]
    corrected = holm([difference(*pair).p for pair in pairs])
    found = {other: [NOTHING, NOTHING]}
    for method, pair, p in zip(tested, pairs, corrected, strict=True):
        found[method] = [format_p(paired_difference(*pair).p), format_p(p)]
    return found


def mean_with_interval(shares: Iterable[float]) -> str:
    """Format a mean in per cent with its 95 % confidence interval, if any."""
    mean, half_width = interval([100 * share for share in shares])
    return format_number(mean) + ("" if np.isnan(half_width) else f" ± {half_width:.2f}")


def format_number(value: float | None) -> str:
    """Format a number with two digits, or a dash."""
    return NOTHING if value is None or np.isnan(value) else f"{value:.2f}"


def components_and_scores(found: TaskResults, method: str, cells: list[Cell]) -> list[str]:
    """Format the numbers of components used in the splits and, with more than two classes, of scores."""
    n_classes = found.task["n_classes"]
    factors = [1, METHODS[method].n_models(n_classes)] if n_classes > 2 else [1]
    return [format_range([n * cell["n_components"] for cell in cells]) for n in factors]


def components_header(found: TaskResults) -> list[str]:
    """Return the titles of the columns."""
    return ["c", "Scores"] if found.task["n_classes"] > 2 else ["c"]


def format_range(numbers: Collection[int]) -> str:
    """Format the smallest and the largest number."""
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"
