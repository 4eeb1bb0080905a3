"""What is made of results.json: tables in Markdown and in LaTeX, figures, claims, and a page with all of it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from .._core.errors import import_optional
from .._core.progress import track
from ..files.files import replacing
from ..report.html import Page, Section, Verdict
from . import drawing, paper
from .claims import Finding
from .drawing import Picture
from .experiment import Experiment
from .methods import SELECTORS, TITLES
from .results import results_of
from .tables import NOTHING, Table

PAGE = "report.html"
FIGURES = "figures"
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "yes": ("Holds.", "holds"),
    "partly": ("Holds in part.", "in part"),
    "no": ("Does not hold.", "does not"),
    "open": ("Not decided.", "undecided"),
}
Result = dict[str, Any]


class Outputs(NamedTuple):
    """What was written, and what was not and why."""

    files: list[Path]
    missing: str = ""


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
    tables: list[Table] = []
    for one in _chosen(experiment):
        found = [*results_of(results, one)]
        tables += [table for task in found for table in one.tables(task)]
        if one.summary and found:
            tables.append(one.summary(found))
    return tables


def pictures_of(results: Result, experiment: str | None = None) -> Iterator[Picture]:
    """Yield the figures of one experiment, or of all, in the order of the paper.

    Parameters
    ----------
    results : dict
        The content of results.json.
    experiment : str, default=None
        Its name.

    Yields
    ------
    picture : Picture
        Experiments without any cell have none.
    """
    used: set[str] = set()
    for one in _chosen(experiment):
        for found in results_of(results, one):
            if not found.cells:
                continue
            with drawing.style():
                drawn = [*one.figures(found)]
            for picture in drawn:
                name = _new_name("-".join(filter(None, [one.name, picture.kind, found.name])), used)
                description = f"{picture.description} The table has the numbers."
                yield replace(picture, name=name, experiment=one.name, task=found.name, description=description)


def findings_of(results: Result) -> list[Finding]:
    """Return what results say about the claims of the paper, claim by claim.

    Parameters
    ----------
    results : dict
        The content of results.json.

    Returns
    -------
    findings : list of Finding
        Of experiments that were run with CIPLS and with what the claim compares it to.
    """
    return [
        Finding(claim, found.name, *assessment)
        for experiment in _chosen()
        for claim in experiment.claims
        for found in results_of(results, experiment)
        if (assessment := claim.check(found)) is not None
    ]


def write_outputs(results: Result, folder: str | os.PathLike[str]) -> Outputs:
    """Write all that can be made of results to a folder.

    Parameters
    ----------
    results : dict
        The content of results.json.
    folder : path
        Where to. Files that are there are replaced.

    Returns
    -------
    outputs : Outputs
        The page, the tables and the figures. Without matplotlib there are no figures, and ``missing`` says so.
    """
    tables = tables_of(results)
    texts = {
        "tables.md": "\n".join(["# The experiments of the CIPLS paper, reproduced", "", *_about(results), ""])
        + "\n"
        + "\n".join(table.as_markdown() for table in tables),
        "tables.tex": "\n".join(table.as_latex() for table in tables),
    }
    files = [_written(Path(folder, name), text.encode()) for name, text in texts.items()]
    pictures: list[Picture] = []
    missing = ""
    try:
        import_optional("matplotlib", "Drawing figures", "plot")
    except ImportError as error:
        missing = str(error)
    else:
        for picture in track(pictures_of(results), "figures", None, lambda _: 1, "figures"):
            pictures.append(picture)
            Path(folder, FIGURES).mkdir(exist_ok=True)
            files += [
                _written(Path(folder, FIGURES, f"{picture.name}.{kind}"), picture.as_bytes(kind))
                for kind in ("png", "svg")
            ]
    page = page_of(results, pictures, missing).write(Path(folder, PAGE))
    return Outputs([page, *files], missing)


def _chosen(name: str | None = None) -> list[Experiment]:
    return [experiment for experiment in paper.experiments().values() if name in {None, experiment.name}]


def _new_name(text: str, used: set[str]) -> str:
    """Return a file name of letters and digits alone that is not used."""
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


def page_of(results: Result, pictures: Iterable[Picture] = (), missing: str = "") -> Page:
    """Return the page of a run: what was compared on which data, what came out, and each experiment.

    Parameters
    ----------
    results : dict
        The content of results.json.
    pictures : iterable of Picture
        Its figures.
    missing : str, default=""
        Why there are no figures.

    Returns
    -------
    page : Page
    """
    findings, pictures = findings_of(results), list(pictures)
    page = Page(
        "The experiments of the CIPLS paper, reproduced",
        _lead(results, findings),
        f"Made by plstream {results['plstream']}.",
    )
    # What is seen first: how accurate the methods are on the first data set.
    first = [picture for picture in pictures if picture.experiment == "accuracy"][:1]
    _figures(page, first)
    page.points(
        [
            *_compared(results),
            *(
                experiment.headline(found)
                for experiment in _chosen()
                if experiment.headline
                for found in results_of(results, experiment)
                if found.cells
            ),
        ]
    )
    if findings:
        _overview(page, results, findings)
        _claims(page.part("Claims of the paper"), results, findings)
    if missing:
        page.note(missing)
    by_place: dict[tuple[str, str], list[Picture]] = {}
    for picture in (picture for picture in pictures if picture not in first):
        by_place.setdefault((picture.experiment, picture.task), []).append(picture)
    for experiment in _chosen():
        tasks = [*results_of(results, experiment)]
        if tasks:
            section = page.part(experiment.title).text(experiment.about)
            for found in tasks:
                part = section.part(f"{found.task['title']} ({found.name})")
                # An experiment and its figure have the same order, and there may be no figure.
                for i, table in enumerate(experiment.tables(found)):
                    _figures(part, by_place.get((experiment.name, found.name), [])[i : i + 1])
                    _table(part, table)
            if experiment.summary:
                _table(section.part("All tasks"), experiment.summary(tasks))
    _data(page.part("Data"), results)
    _made(page.part("How it was made"), results)
    return page


def _lead(results: Result, findings: Sequence[Finding]) -> list[str]:
    """Return three sentences for whoever has never heard of CIPLS."""
    titles = [task["title"] for task in results["tasks"].values()]
    about = (
        "Partial least squares (PLS) turns rows of many numbers into a few scores that separate classes; CIPLS, "
        "proposed in a paper of 2021, learns such scores from one row at a time."
    )
    again = f"Here the experiments of that paper are reproduced on {' and '.join(titles) or 'no data'}"
    accuracy = next((found for found in results_of(results, _chosen("accuracy")[0]) if found.cells), None)
    if accuracy is not None:
        again += f"; the figure shows how many test rows of {accuracy.task['title']} each method gets right"
    sentences = [about, f"{again}."]
    count = Counter(finding.verdict for finding in findings)
    if findings:
        parts = [f"{count[verdict]} {word}" for verdict, word in _COUNTED.items() if count[verdict]]
        sentences.append(
            f"Of {len(findings)} checks of the paper's claims, each on each data set that it can be checked on, "
            f"{', '.join(parts)}."
        )
    return sentences


_COUNTED: dict[Verdict, str] = {
    "yes": "hold",
    "partly": "hold in part",
    "no": "do not hold",
    "open": "are undecided",
}


def _compared(results: Result) -> list[str]:
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
    return [f"Compared: {' and '.join(counts) or 'no methods'}. Data: {'; '.join(data) or 'none'}."]


def _overview(page: Page, results: Result, findings: Sequence[Finding]) -> None:
    """Add which claims hold for which data."""
    verdicts = {(finding.claim, finding.task): _VERDICTS[finding.verdict][1] for finding in findings}
    tasks = [name for name in results["tasks"] if any(finding.task == name for finding in findings)]
    rows = [
        [claim.text, *(verdicts.get((claim, task), NOTHING) for task in tasks)]
        for claim in dict.fromkeys(finding.claim for finding in findings)
    ]
    page.table(
        ["Claim of the paper", *(tasks if len(tasks) > 1 else ["Here"])],
        rows,
        "Which claims of the paper hold here; the numbers are below",
    )


def _claims(section: Section, results: Result, findings: Sequence[Finding]) -> None:
    section.text(
        "The paper has one CIPLS, and does not say whether by Algorithm 1 or by the released code. A claim is judged "
        "by these two, as they are: it holds if it does for both, in part if for one. The normalized variant of this "
        "package, which the paper does not have, decides nothing. Rivals are those of the released code where they "
        "were run. Differences of accuracies are judged by paired t-tests that are corrected for the training rows "
        "that splits share (Nadeau and Bengio), and those of times by Wilcoxon's signed-rank test, at 5 %."
    )
    for claim in dict.fromkeys(finding.claim for finding in findings):
        section.part(claim.text).text(claim.paper).verdicts(
            (one.verdict, _VERDICTS[one.verdict][0], f"{results['tasks'][one.task]['title']}: {one.text}")
            for one in findings
            if one.claim == claim
        )


def _figures(section: Section, pictures: Sequence[Picture]) -> None:
    for picture in pictures:
        section.figure(picture.as_bytes("svg").decode(), picture.description, picture.reading)


def _table(section: Section, table: Table) -> None:
    own = {TITLES[method] for method, style in drawing.STYLES.items() if style.own}
    strong = [i for i, row in enumerate(table.rows) if row[0] in own]
    # Which task it is about is said above it.
    caption = table.title.split(": ", maxsplit=1)[0] if table.task else table.title
    section.table(table.header, table.rows, caption, strong).points(table.notes)


def _data(section: Section, results: Result) -> None:
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


def _made(section: Section, results: Result) -> None:
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
