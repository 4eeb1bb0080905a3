"""Outputs from results.json: tables in Markdown and LaTeX, figures, assessed claims, and an HTML report."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core.errors import counted, import_optional
from .._core.progress import track
from ..files.files import replacing
from ..report.html import Page, Section, Verdict
from . import drawing, paper
from .claims import Finding
from .drawing import CaptionedFigure
from .methods import SELECTORS, TITLES
from .paper import Experiment
from .results import TaskResults
from .tables import NOTHING, Table

PAGE = "report.html"
_TITLE = "The experiments of the CIPLS paper, reproduced"
FIGURES = "figures"
# Each verdict as a sentence, in a table, and after one or several claims.
_VERDICTS: dict[Verdict, tuple[str, str, str, str]] = {
    "yes": ("Holds.", "holds", "holds", "hold"),
    "partly": ("Holds in part.", "in part", "holds in part", "hold in part"),
    "no": ("Does not hold.", "does not", "does not hold", "do not hold"),
    "open": ("Not decided.", "undecided", "is undecided", "are undecided"),
}
Result = dict[str, Any]


def tables_of(results: Result, experiment: str | None = None) -> list[Table]:
    """Return the tables of an experiment, by default of all, in the order of the paper.

    Parameters
    ----------
    results : dict
        The content of results.json.
    experiment : str, default=None
        The name of the experiment.

    Returns
    -------
    tables : list of Table
    """
    tables: list[Table] = []
    for one, tasks in _found(results, experiment):
        tables += [table for found in tasks for table in one.tables(found)]
        tables += [one.summary(tasks)] if one.summary else []
    return tables


def figures_of(results: Result, experiment: str | None = None) -> Iterator[CaptionedFigure]:
    """Yield the figures of an experiment, by default of all; see :func:`tables_of` for the parameters.

    Yields
    ------
    figure : CaptionedFigure
        None for experiments without cells.
    """
    used: set[str] = set()
    for one, tasks in _found(results, experiment):
        for found in tasks:
            with drawing.style():
                drawn = [*one.figures(found)] if found.cells else []
            for figure in drawn:
                name = _new_name("-".join(filter(None, [one.name, figure.kind, found.name])), used)
                description = f"{figure.description} The table has the numbers."
                yield replace(figure, name=name, experiment=one.name, task=found.name, description=description)


def findings_of(results: Result) -> list[Finding]:
    """Assess the claims of the paper by the content of results.json.

    Claims about methods that were not run are omitted.
    """
    return [
        Finding(claim, found.name, *assessment)
        for experiment, tasks in _found(results)
        for claim in experiment.claims
        for found in tasks
        if (assessment := claim.check(found)) is not None
    ]


def write_outputs(results: Result, folder: str | os.PathLike[str]) -> tuple[list[Path], str]:
    """Write the report, the tables and the figures to a folder, replacing files of these names.

    Parameters
    ----------
    results : dict
        The content of results.json.
    folder : path
        An existing folder.

    Returns
    -------
    files : list of Path
        The files.
    missing : str
        Why there are no figures, if matplotlib is not installed.
    """
    tables = tables_of(results)
    markdown = [f"# {_TITLE}", "", *_about(results), "", *(table.as_markdown() for table in tables)]
    files = [
        _written(Path(folder, "tables.md"), "\n".join(markdown).encode()),
        _written(Path(folder, "tables.tex"), "\n".join(table.as_latex() for table in tables).encode()),
    ]
    figures: list[CaptionedFigure] = []
    missing = ""
    try:
        import_optional("matplotlib", "Drawing figures", "plot")
    except ImportError as error:
        missing = str(error)
    else:
        for figure in track(figures_of(results), "figures", None, lambda _: 1, "figures"):
            figures.append(figure)
            Path(folder, FIGURES).mkdir(exist_ok=True)
            files += [
                _written(Path(folder, FIGURES, f"{figure.name}.{kind}"), figure.as_bytes(kind))
                for kind in ("png", "svg")
            ]
    page = page_of(results, figures, missing).write(Path(folder, PAGE))
    return [page, *files], missing


def _found(results: Result, experiment: str | None = None) -> Iterator[tuple[Experiment, list[TaskResults]]]:
    """Yield the experiments that have results, or one of them, in the order of the paper, with the results by task."""
    for name, one in paper.experiments().items():
        tasks = [
            TaskResults(one, task_name, task, task["experiments"][name], results.get("settings", {}))
            for task_name, task in results["tasks"].items()
            if name in task["experiments"]
        ]
        if tasks and experiment in {None, name}:
            yield one, tasks


def _new_name(text: str, used: set[str]) -> str:
    """Return an unused file name of letters and digits only."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80]
    name, number = plain, 1
    while name in used:
        number += 1
        name = f"{plain}-{number}"
    used.add(name)
    return name


def _written(path: Path, content: bytes) -> Path:
    with replacing(path) as file:
        file.write(content)
    return path


def _about(results: Result) -> list[str]:
    environment = ", ".join(f"{name} {value}" for name, value in results["environment"].items())
    lines = [f"plstream {results['plstream']}, seed {results['seed']}; {environment}.", ""]
    for name, task in results["tasks"].items():
        stands_for = f" The paper's {task['paper']}." if task["paper"] else ""
        size = f"{task['n_rows']:,} rows, {task['n_features']:,} features, {task['n_classes']} classes"
        lines.append(f"- **{name}**: {task['title']}, {size}.{stands_for} {task['note']}".rstrip())
    return lines


def page_of(results: Result, figures: Iterable[CaptionedFigure] = (), missing: str = "") -> Page:
    """Return the report: the methods and data compared, the main results, and each experiment.

    Parameters
    ----------
    results : dict
        The content of results.json.
    figures : iterable of CaptionedFigure
        Its figures.
    missing : str, default=""
        Why there are no figures.

    Returns
    -------
    page : Page
    """
    findings, figures = findings_of(results), list(figures)
    page = Page(_TITLE, _lead(results, findings), f"Made by plstream {results['plstream']}.")
    # The accuracies on the first data set come first.
    first = [figure for figure in figures if figure.experiment == "accuracy"][:1]
    _add_figures(page, first)
    headlines = [
        experiment.headline(found)
        for experiment, tasks in _found(results)
        for found in tasks
        if experiment.headline and found.cells
    ]
    page.points([_compared(results), *headlines])
    if findings:
        _add_overview(page, results, findings)
        _add_claims(page.part("Claims of the paper"), results, findings)
    if missing:
        page.note(missing)
    for experiment, tasks in _found(results):
        section = page.part(experiment.title).text(experiment.about)
        for found in tasks:
            part = section.part(f"{found.task['title']} ({found.name})")
            place = (experiment.name, found.name)
            here = [one for one in figures if (one.experiment, one.task) == place and one not in first]
            # Tables and figures have the same order, but there may be fewer figures.
            for i, table in enumerate(experiment.tables(found)):
                _add_figures(part, here[i : i + 1])
                _add_table(part, table)
        if experiment.summary:
            _add_table(section.part("All tasks"), experiment.summary(tasks))
    _add_data(page.part("Data"), results)
    _add_provenance(page.part("How it was made"), results)
    return page


def _lead(results: Result, findings: Sequence[Finding]) -> list[str]:
    """Return an introduction for readers who do not know CIPLS."""
    titles = [task["title"] for task in results["tasks"].values()]
    about = (
        "Partial least squares (PLS) turns rows of many numbers into a few scores that separate classes; CIPLS, "
        "proposed in a paper of 2021, learns such scores from one row at a time."
    )
    again = f"Here the experiments of that paper are repeated. Data: {'; '.join(titles) or 'none'}."
    shown = next((found.task for _, tasks in _found(results, "accuracy") for found in tasks if found.cells), None)
    if shown is not None:
        where = f" ({shown['title']})" if len(titles) > 1 else ""
        again += f" The figure shows the share of test rows that each method classifies correctly{where}."
    if not findings:
        return [about, again]
    count = Counter(finding.verdict for finding in findings)
    parts = [f"{n} {_VERDICTS[verdict][2 if n == 1 else 3]}" for verdict in _VERDICTS if (n := count[verdict])]
    checks = (
        f"Of {counted(len(findings), 'check')} of the paper's claims, each on each data set that it can be checked on"
    )
    return [about, again, f"{checks}, {', '.join(parts)}."]


def _compared(results: Result) -> str:
    tasks = results["tasks"].values()
    names = {cell["method"] for task in tasks for found in task["experiments"].values() for cell in found["cells"]}
    n_selectors = len(names & {*SELECTORS} - {"none", "random"})
    n_reducers = len(names - {*SELECTORS, "sgdpls-steps"})
    counts = [f"{n_reducers} method{'s' * (n_reducers > 1)} that reduce dimensions"] * bool(n_reducers)
    counts += [f"{n_selectors} that select features"] * bool(n_selectors)
    data = [
        f"{task['title']} ({task['n_rows']:,} rows, {task['n_features']:,} features, {task['n_classes']} classes"
        + (f"; the paper's {task['paper']})" if task["paper"] else "; not in the paper)")
        for task in tasks
    ]
    return f"Compared: {' and '.join(counts) or 'no methods'}. Data: {'; '.join(data) or 'none'}."


def _add_overview(page: Page, results: Result, findings: Sequence[Finding]) -> None:
    """Add a table of the claims that hold on each data set."""
    verdicts = {(finding.claim, finding.task): _VERDICTS[finding.verdict][1] for finding in findings}
    tasks = [name for name in results["tasks"] if any(finding.task == name for finding in findings)]
    rows = [
        [claim.text, *(verdicts.get((claim, task), NOTHING) for task in tasks)]
        for claim in dict.fromkeys(finding.claim for finding in findings)
    ]
    page.table(
        ["Claim of the paper", *(tasks if len(tasks) > 1 else ["Here"])],
        rows,
        "Which claims of the paper hold here; the numbers are below. Undecided: the differences may be due to chance",
    )


def _add_claims(section: Section, results: Result, findings: Sequence[Finding]) -> None:
    section.text(
        "The paper has one CIPLS, and does not say whether by Algorithm 1 or by the released code. A claim is judged "
        "by these two, as they are: it holds if it does for both, in part if for one. The normalized variant of this "
        "package, which the paper does not have, decides nothing. Rivals are those of the released code where they "
        "were run. Differences of accuracies are judged by paired t-tests that are corrected for the training rows "
        "that splits share (Nadeau and Bengio), and those of times by Wilcoxon's signed-rank test, at 5 %. Methods "
        "count as equally good if the interval of the difference is within one point, and as equally fast if it is "
        "within a tenth of the time."
    )
    for claim in dict.fromkeys(finding.claim for finding in findings):
        section.part(claim.text).text(claim.paper).verdicts(
            (one.verdict, _VERDICTS[one.verdict][0], f"{results['tasks'][one.task]['title']}: {one.text}")
            for one in findings
            if one.claim == claim
        )


def _add_figures(section: Section, figures: Sequence[CaptionedFigure]) -> None:
    for figure in figures:
        section.figure(figure.as_bytes("svg").decode(), figure.description, figure.reading)


def _add_table(section: Section, table: Table) -> None:
    own = {TITLES[method] for method, style in drawing.STYLES.items() if style.own}
    strong = [i for i, row in enumerate(table.rows) if row[0] in own]
    # The heading above it names the task.
    caption = table.title.split(": ", maxsplit=1)[0] if table.task else table.title
    section.table(table.header, table.rows, caption, strong).points(table.notes)


def _add_data(section: Section, results: Result) -> None:
    for name, task in results["tasks"].items():
        part = section.part(f"{task['title']}: {name}")
        if task["note"]:
            part.text(task["note"])
        facts: Result = {
            "Rows": f"{task['n_rows']:,}",
            "Features": f"{task['n_features']:,}",
            "Classes": task["n_classes"],
            "Splits": task["n_splits"],
            "Kind": task["kind"],
        }
        part.facts(facts | ({"In the paper": task["paper"]} if task["paper"] else {}))


def _add_provenance(section: Section, results: Result) -> None:
    commands = results.get("commands", [])
    if commands:
        section.text("By the command:" if len(commands) == 1 else "By the commands, one after the other:")
        section.code("\n".join(commands))
    section.text("Numbers, tables and figures are in files next to this page; all are made from results.json.")
    section.facts({"plstream": results["plstream"], "seed": results["seed"], **results["environment"]})
    rows = [
        [name, ", ".join(map(str, v)) if isinstance(v, list) else str(v)] for name, v in results["settings"].items()
    ]
    section.table(["Setting", "Value"], rows, "Settings of all experiments")
    section.text(
        'The paper: A. Jordao, M. Lie, V. H. C. de Melo and W. R. Schwartz, "Covariance-free Partial Least Squares: An '
        'Incremental Dimensionality Reduction Method", IEEE Winter Conference on Applications of Computer Vision, 2021.'
    )
