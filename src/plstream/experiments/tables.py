"""Tables of results.json, with the paper's figures beside them: as text, in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import paper
from .catalogue import EXPERIMENTS
from .inference import FEWEST, exponent, interval, paired_t_test
from .methods import METHODS
from .selection import SELECTORS

NOTHING = "-"
TITLES = {**{name: method.title for name, method in METHODS.items()}, **SELECTORS}
_LATEX = {
    "\\": r"\textbackslash{}",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
    "^": r"\^{}",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "|": r"$|$",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
}

_T_TESTS = "p by paired t-tests over splits, which share training rows, so that they are optimistic"
_CONTROLS = (
    "Accuracies in % with all scores, without the first, and, as controls, also without what the others share with it: "
    "their regressions on the first scores (of all models), or their parts along these directions. Cosines of the "
    "first weights, and correlations of the first scores, with any others: where they are near 1, these are copies."
)
_EXPONENTS = (
    "Exponents: 1 is proportional, 0 does not depend on it. L is the number of principal components, T that of steps."
)

Result = dict[str, Any]


@dataclass
class Table:
    """Text in rows, the first entry of each being what it is about."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    task: str = ""
    """The task that it is about, or none if it is about all."""

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
        rows = [" & ".join(map(_for_latex, row)) + r" \\" for row in (self.header, *self.rows)]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_for_latex(' '.join([self.title + '.', *self.notes]))}}}",
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


def tables_of(results: Result, experiment: str | None = None) -> list[Table]:
    """Return the tables of one experiment, or of all, in the order of the paper.

    Parameters
    ----------
    results : dict
        The content of results.json.
    experiment : str, default=None
        Its name.

    Returns
    -------
    tables : list of Table
    """
    names = [name for name in EXPERIMENTS if experiment in {None, name}]
    return [table for name in names for table in _TABLES[name](results)]


def found_of(results: Result, experiment: str) -> Iterator[tuple[str, Result, Result]]:
    """Yield name, task and result of all tasks that the experiment was run on."""
    for name, task in results["tasks"].items():
        if experiment in task["experiments"]:
            yield name, task, task["experiments"][experiment]


def _new_table(experiment: str, name: str, task: Result, header: list[str]) -> Table:
    title = f"{EXPERIMENTS[experiment].title}: {task['title']} ({name})"
    return Table(title, header, task=name)


def _filled(
    table: Table,
    experiment: str,
    found: Result,
    row: Callable[[str, list[Result]], list[str]],
    last: Iterable[str] = (),
) -> Table:
    """Add a row for every method that was run, or could not be, and notes."""
    names = EXPERIMENTS[experiment].methods
    missing = []
    for method in names:
        cells = [cell for cell in found["cells"] if cell["method"] == method]
        if cells:
            table.rows.append([TITLES[method], *row(method, cells)])
        elif method in found["skipped"]:
            table.rows.append([TITLES[method]] + [NOTHING] * (len(table.header) - 1))
        else:
            missing.append(TITLES[method])
    settings = found["settings"]
    if "classifier" in settings:
        table.notes.append(f"Classifier: {settings['classifier']}.")
    if "note" in settings:
        table.notes.append(f"Only {settings['note']}.")
    table.notes += [f"{TITLES[method]}: {why}." for method, why in found["skipped"].items()]
    limits = {cell["method"]: cell["limited"] for cell in found["cells"] if "limited" in cell}
    table.notes += [f"{TITLES[method]}: {why}." for method, why in limits.items()]
    if missing:
        table.notes.append(f"Not asked for: {', '.join(missing)}.")
    table.notes += last
    return table


def _accuracy(results: Result) -> Iterator[Table]:
    for name, task, found in found_of(results, "accuracy"):
        header = ["Method", "Accuracy, %", "Components", "p (= PLS)", "p (= CIPLS)"]
        in_paper = task["paper"] in paper.DATA_SETS
        table = _new_table("accuracy", name, task, header + ["Paper, %"] * in_paper)

        def row(method: str, cells: list[Result], task: Result = task, found: Result = found) -> list[str]:
            mine = by_split(found, method)
            values = [
                _with_interval(list(mine.values())),
                _range([cell["n_components"] for cell in cells]),
                *(_p_value(mine, by_split(found, other), method == other) for other in ("pls", "cipls")),
            ]
            return values + ([_reported(method, task["paper"])] if task["paper"] in paper.DATA_SETS else [])

        n_splits = len({cell["split"] for cell in found["cells"]})
        notes = [f"Means of {n_splits} split(s) with 95 % confidence intervals; {_T_TESTS}."]
        if in_paper:
            notes.append("The paper has one CIPLS, and does not say whether by Algorithm 1 or by the released code.")
        yield _filled(table, "accuracy", found, row, notes)


def _components(results: Result) -> Iterator[Table]:
    for name, task, found in found_of(results, "components"):
        most = len(found["cells"][0]["accuracy"]) if found["cells"] else 0
        table = _new_table("components", name, task, ["Method", *(f"c = {c}" for c in range(1, most + 1))])
        yield _filled(table, "components", found, lambda _, cells: _means(cells, "accuracy"), ["Accuracies in %."])


def _higher_order(results: Result) -> Iterator[Table]:
    name = "higher-order"
    header = ["Method", "c", "All", "Without first", "Regressed out", "Projected out", "max |cos|", "max |corr|"]
    for task_name, task, found in found_of(results, name):

        def row(_: str, cells: list[Result]) -> list[str]:
            kinds = ("accuracy_all", "accuracy", "accuracy_residual", "accuracy_without_first")
            return [
                _range([cell["n_components"] for cell in cells]),
                *(_with_interval([cell[kind] for cell in cells]) for kind in kinds),
                *(
                    f"{np.mean([cell[kind] for cell in cells]):.3f}"
                    for kind in ("largest_cosine", "largest_correlation")
                ),
            ]

        yield _filled(_new_table(name, task_name, task, header), name, found, row, [_CONTROLS])
    averages = _averages(results, name)
    if averages:
        yield averages


def _averages(results: Result, name: str) -> Table | None:
    """Return the table of the paper: means over all tasks."""
    found = [found for _, _, found in found_of(results, name)]
    table = Table(
        f"{EXPERIMENTS[name].title}: all tasks",
        ["Method", "Tasks", "Without first", "Regressed out", "Projected out", "Paper"],
    )
    for method in EXPERIMENTS[name].methods:
        by_task = [[cell for cell in one["cells"] if cell["method"] == method] for one in found]
        by_task = [cells for cells in by_task if cells]
        if not by_task and method not in paper.HIGHER_ORDER:
            continue
        means = [
            f"{100 * np.mean([np.mean([cell[kind] for cell in cells]) for cells in by_task]):.2f}"
            if by_task
            else NOTHING
            for kind in ("accuracy", "accuracy_residual", "accuracy_without_first")
        ]
        reported = paper.HIGHER_ORDER.get("cipls" if method in paper.CIPLS_VARIANTS else method)
        table.rows.append(
            [TITLES[method], str(len(by_task)), *means, NOTHING if reported is None else f"{reported:.2f}"]
        )
    table.notes.append("Means over tasks, in %. The paper's are over other tasks, LFW, YTF and ImageNet.")
    return table if found else None


def _time(results: Result) -> Iterator[Table]:
    for name, task, found in found_of(results, "time"):
        header = ["Method", "Time, µs", "of which to learn", "p (= CIPLS)", "p (= CCIPCA)"]

        def row(method: str, cells: list[Result], found: Result = found) -> list[str]:
            mine = by_run(found, method)
            mean, half_width = interval([1e6 * cell["seconds"] for cell in cells])
            return [
                f"{mean:,.1f} ± {half_width:,.1f}",
                f"{np.mean([1e6 * cell['update'] for cell in cells]):,.1f}",
                *(_p_value(mine, by_run(found, other), method == other) for other in ("cipls", "ccipca")),
            ]

        settings = results["settings"]
        what = f"To learn one more row of {task['n_features']:,} features and have the directions, on one thread"
        how = f"means of {settings['runs']} rows with 95 % confidence intervals"
        components = f"{settings['time_components']} components where there are as many; T = {settings['steps']}"
        notes = [f"{what}: {how}, {components}.", paper.TIME]
        yield _filled(_new_table("time", name, task, header), "time", found, row, notes)
        if found.get("growth"):
            yield _growth(name, found["growth"])


def _growth(task: str, cells: list[Result]) -> Table:
    header = ["Method", "rows n", "features m", "components c", "Paper"]
    table = Table("Growth of the time to learn", header, task=task)
    for method in dict.fromkeys(cell["method"] for cell in cells):
        slopes = []
        for varied in ("n", "m", "c"):
            mine = [cell for cell in cells if (cell["method"], cell["varied"]) == (method, varied)]
            slope = exponent([cell["value"] for cell in mine], [cell["seconds"] for cell in mine])
            slopes.append(NOTHING if np.isnan(slope) else f"{slope:.2f}")
        complexity = paper.COMPLEXITY.get("cipls" if method in paper.CIPLS_VARIANTS else method, NOTHING)
        table.rows.append([TITLES[method], *slopes, complexity])
    table.notes.append(_EXPONENTS)
    return table


def _streaming(results: Result) -> Iterator[Table]:
    for name, task, found in found_of(results, "streaming"):
        blocks = len(found["cells"][0]["accuracy"]) if found["cells"] else 0
        shown = sorted({0, blocks // 4, blocks // 2, 3 * blocks // 4, blocks - 1} if blocks else set())
        header = ["Method", "c", *(f"{block + 1} of {blocks}" for block in shown), "Mean"]

        def row(_: str, cells: list[Result], shown: list[int] = shown) -> list[str]:
            means = _means(cells, "accuracy")
            known = [value for cell in cells for value in cell["accuracy"] if value is not None]
            mean = f"{100 * np.mean(known):.2f}" if known else NOTHING
            return [_range([cell["n_components"] for cell in cells]), *(means[block] for block in shown), mean]

        notes = ["Accuracies in % after so many blocks, and the mean over all blocks.", paper.STREAMING]
        yield _filled(_new_table("streaming", name, task, header), "streaming", found, row, notes)


def _selection(results: Result) -> Iterator[Table]:
    for name, task, found in found_of(results, "selection"):
        shares = results["settings"]["shares"]
        reported = paper.SELECTION.get(task["paper"] or "", {})
        columns = [f"{100 * share:g} %" for share in shares]
        theirs = [f"Paper, {100 * share:g} %" for share in paper.SHARES] if reported else []

        def row(
            method: str, cells: list[Result], shares: list[float] = shares, reported: dict[str, Any] = reported
        ) -> list[str]:
            values = []
            for share in shares:
                # All features are all that there is, whichever share.
                mine = [cell["accuracy"] for cell in cells if cell["share"] in {share, 1.0}]
                values.append(_with_interval(mine))
            theirs = reported.get(method, (None,) * len(paper.SHARES)) if reported else ()
            return values + [NOTHING if value is None else f"{value:.2f}" for value in theirs]

        notes = ["Accuracies in % with the best so many features, ranked by training rows, and with all of them."]
        yield _filled(
            _new_table("selection", name, task, ["Method", *columns, *theirs]), "selection", found, row, notes
        )


def _projection(results: Result) -> Iterator[Table]:
    for name, task, found in found_of(results, "projection"):

        def row(_: str, cells: list[Result]) -> list[str]:
            scores, labels = np.array(cells[0]["scores"]), np.array(cells[0]["labels"])
            return [str(len(labels)), *(f"{share_between(column, labels):.3f}" for column in scores.T)]

        notes = ["Shares of the variance of scores that are between classes, for test rows.", paper.PROJECTION]
        if task["n_classes"] > 2:
            notes.append(
                "Where every class has a model of its own, these are the first scores of the first two classes."
            )
        header = ["Method", "Points", "First score", "Second score"]
        yield _filled(_new_table("projection", name, task, header), "projection", found, row, notes)


_TABLES: dict[str, Callable[[Result], Iterator[Table]]] = {
    "accuracy": _accuracy,
    "components": _components,
    "higher-order": _higher_order,
    "time": _time,
    "streaming": _streaming,
    "selection": _selection,
    "projection": _projection,
}


def by_split(found: Result, method: str, kind: str = "accuracy") -> dict[int, float]:
    """Return the accuracies of a method, by split."""
    return {cell["split"]: cell[kind] for cell in found["cells"] if cell["method"] == method}


def by_run(found: Result, method: str) -> dict[int, float]:
    """Return the times of a method, by run."""
    return {cell["run"]: cell["seconds"] for cell in found["cells"] if cell["method"] == method}


def _p_value(mine: dict[int, float], others: dict[int, float], is_same: bool) -> str:  # noqa: FBT001
    """Return the probability for pairs that both have."""
    both = [key for key in mine if key in others]
    if is_same or len(both) < FEWEST:
        return NOTHING
    p = paired_t_test([mine[key] for key in both], [others[key] for key in both])
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _with_interval(shares: list[float]) -> str:
    if not shares:
        return NOTHING
    mean, half_width = interval([100 * share for share in shares])
    return f"{mean:.2f}" if np.isnan(half_width) else f"{mean:.2f} ± {half_width:.2f}"


def _means(cells: list[Result], name: str) -> list[str]:
    """Return the means of lists over cells, entry by entry, of those that are there."""
    columns = zip(*(cell[name] for cell in cells), strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    return [f"{100 * np.mean(values):.2f}" if values else NOTHING for values in known]


def _range(numbers: list[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def _reported(method: str, data_set: str) -> str:
    value = paper.accuracy(method, data_set)
    if value is None:
        return NOTHING
    return f"{value.accuracy:.2f}" + (f" [{value.interval[0]:.2f}, {value.interval[1]:.2f}]" if value.interval else "")


def share_between(column: Any, labels: Any) -> float:
    """Return the share of the variance of a column that is between classes."""
    total = float(((column - column.mean()) ** 2).sum())
    groups = [column[labels == label] for label in np.unique(labels)]
    between = float(sum(len(group) * (group.mean() - column.mean()) ** 2 for group in groups))
    return between / total if total > 0 else 0.0


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
