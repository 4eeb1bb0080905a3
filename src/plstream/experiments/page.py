"""The page of a run: what was compared on which data, what came out, and each experiment with its table and figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..report.html import Page, Section
from .catalogue import EXPERIMENTS
from .claims import WORDS, Finding, compared, findings_of, in_words
from .drawing import STYLES
from .figures import Picture
from .inference import interval
from .tables import NOTHING, TITLES, Result, Table, by_split, found_of, tables_of

_PAPER = (
    'A. Jordao, M. Lie, V. H. C. de Melo and W. R. Schwartz, "Covariance-free Partial Least Squares: An Incremental '
    'Dimensionality Reduction Method", IEEE Winter Conference on Applications of Computer Vision, 2021.'
)
_DONE = {
    "accuracy": "Each method takes rows to at most ten scores, and a classifier learns the scores. How many scores is "
    "chosen on a part of the training rows; test rows are used once.",
    "components": "The same with every number of components, each tested. A method that needs few of them is more "
    "compact.",
    "higher-order": "The classifier learns all scores but the first. As the others may be copies of it, it also learns "
    "them without what they share with the first: their regressions on its score, or their parts along its direction.",
    "time": "Models that have learnt some rows learn one more, and have their directions ready. Methods take turns on "
    "one thread, so that whatever else the machine does meets all of them.",
    "streaming": "Training rows come in blocks, and no method sees a row twice. After each block a classifier learns "
    "the scores of all rows so far, and is tested.",
    "selection": "Each method ranks the features by the training rows. A linear SVM then learns the best of them, with "
    "no reduction of dimension.",
    "projection": "Models of two components learn the training rows of one split. Test rows are drawn by their scores.",
}
_OWN = ("cipls", "incremental-pls")


def page_of(results: Result, pictures: Iterable[Picture] = (), missing: str = "") -> Page:
    """Return the page of a run.

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
    findings = findings_of(results)
    page = Page(
        "The experiments of the CIPLS paper, run again", _lead(results), f"Made by plstream {results['plstream']}."
    )
    page.points([_standing(task, found) for _, task, found in found_of(results, "accuracy") if found["cells"]])
    if findings:
        _overview(page, results, findings)
        _claims(page.part("Claims of the paper"), results, findings)
    if missing:
        page.note(missing)
    by_place: dict[tuple[str, str], list[Picture]] = {}
    for picture in pictures:
        by_place.setdefault((picture.experiment, picture.task), []).append(picture)
    for name, experiment in EXPERIMENTS.items():
        tasks = [*found_of(results, name)]
        if tasks:
            section = page.part(experiment.title).text(_DONE[name])
            tables = tables_of(results, name)
            for task_name, task, _ in tasks:
                part = section.part(f"{task['title']} ({task_name})")
                _results(part, [t for t in tables if t.task == task_name], by_place.get((name, task_name), []))
            for table in tables:
                if not table.task:
                    _table(section.part("All tasks"), table)
    _data(page.part("Data"), results)
    _made(page.part("How it was made"), results)
    return page


def _lead(results: Result) -> list[str]:
    tasks = results["tasks"].values()
    names = {cell["method"] for task in tasks for found in task["experiments"].values() for cell in found["cells"]}
    n_selectors = sum(map(_is_selector, names - {"none"}))
    n_reducers = len(names - {"none", "sgdpls-steps"}) - n_selectors
    counts = [f"{n_reducers} method{'s' * (n_reducers > 1)} that reduce dimensions"] * bool(n_reducers)
    counts += [f"{n_selectors} that select features"] * bool(n_selectors)
    data = [
        f"{task['title']} ({task['n_rows']:,} rows, {task['n_features']:,} features, {task['n_classes']} classes"
        + (f"; the paper's {task['paper']})" if task["paper"] else "; not in the paper)")
        for task in tasks
    ]
    about = (
        "CIPLS is partial least squares (PLS) that learns one row at a time, proposed in a paper of 2021. Here its "
        "experiments are run again, and the numbers of the paper stand beside those that came out."
    )
    return [
        about,
        f"Compared: {' and '.join(counts) or 'no methods'}. Data: {'; '.join(data) or 'none'}.",
    ]


def _is_selector(method: str) -> bool:
    return method in EXPERIMENTS["selection"].methods


def _standing(task: Result, found: Result) -> str:
    """Return which method was best, and where our own are beside PLS."""
    by_method = {
        method: {split: 100 * share for split, share in by_split(found, method).items()}
        for method in dict.fromkeys(cell["method"] for cell in found["cells"])
    }
    # Methods of which there are fewer splits, for want of time, are not compared.
    most = max(map(len, by_method.values()))
    by_method = {method: values for method, values in by_method.items() if len(values) == most}
    means = {method: interval([*values.values()]) for method, values in by_method.items()}
    best = max(means, key=lambda method: means[method].mean)
    mean, half_width = means[best]
    n_splits = len(by_method[best])
    width = f" ± {half_width:.2f}" if half_width == half_width else ""  # noqa: PLR0124
    also = [TITLES[m] for m in means if m != best and f"{means[m].mean:.2f}" == f"{mean:.2f}"]
    text = f"{task['title']}: most accurate of {len(means)} is {' and '.join([TITLES[best], *also])} with "
    text += f"{mean:.2f}{width} % ({n_splits} split{'s' * (n_splits > 1)})."
    for method in sorted(_OWN, key=lambda method: method != best):
        if method in by_method and "pls" in by_method:
            who = "That is" if method == best else f"{TITLES[method]} has {means[method].mean:.2f} %,"
            text += f" {who} {_beside(by_method[method], by_method['pls'])}."
    return text


def _beside(mine: dict[int, float], pls: dict[int, float]) -> str:
    if mine == pls:
        return "in all splits the same as PLS"
    difference, *_, p = compared(mine, pls)
    if difference != difference:  # noqa: PLR0124
        return "without a split in common with PLS"
    side = "above" if difference > 0 else "below"
    text = f"{abs(difference):.2f} points {side} PLS" if abs(difference) >= 0.005 else "on average the same as PLS"
    if p != p:  # noqa: PLR0124
        return f"{text} (too few splits for a test)"
    return f"{text} ({in_words(p)}{', which may be chance' if p >= 0.05 else ''})"


_CELLS = {"yes": "holds", "partly": "in part", "no": "does not", "open": "undecided"}


def _overview(page: Page, results: Result, findings: Sequence[Finding]) -> None:
    """Add which claims hold for which data."""
    verdicts = {(finding.claim, finding.task): _CELLS[finding.verdict] for finding in findings}
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
        "The paper has one CIPLS, and does not say whether by Algorithm 1 or by the released code. Here both are run "
        "as they are, and the one of this package, which is normalized. A claim holds if it does for all of them, in "
        "part if for some. Differences are told apart by paired t-tests (p < 0.05), as in the paper; splits share "
        "training rows, so that these are optimistic."
    )
    for claim in dict.fromkeys(finding.claim for finding in findings):
        mine = [finding for finding in findings if finding.claim == claim]
        section.part(claim.text).text(claim.paper).verdicts(
            (one.verdict, WORDS[one.verdict], f"{results['tasks'][one.task]['title']}: {one.text}") for one in mine
        )


def _results(section: Section, tables: Sequence[Table], pictures: Sequence[Picture]) -> None:
    # An experiment and its figure have the same order, and there may be no figure.
    for i, table in enumerate(tables):
        if i < len(pictures):
            picture = pictures[i]
            section.figure(picture.as_bytes("svg").decode(), picture.description, picture.reading)
        _table(section, table)


def _table(section: Section, table: Table) -> None:
    own = {TITLES[method] for method, style in STYLES.items() if style.own}
    strong = [i for i, row in enumerate(table.rows) if row[0] in own]
    # Which task it is about is said above it.
    caption = table.title.split(": ", maxsplit=1)[0] if table.task else table.title
    section.table(table.header, table.rows, caption, strong).points(table.notes)


def _data(section: Section, results: Result) -> None:
    for name, task in results["tasks"].items():
        part = section.part(f"{task['title']}: {name}")
        if task["note"]:
            part.text(task["note"])
        facts: dict[str, Any] = {
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
    section.text("Numbers, tables and figures are in files beside this page; all are made from results.json.")
    section.facts({"plstream": results["plstream"], "seed": results["seed"], **results["environment"]})
    rows = [
        [name, ", ".join(map(str, v)) if isinstance(v, list) else str(v)] for name, v in results["settings"].items()
    ]
    section.table(["Setting", "Value"], rows, "Settings of all experiments")
    section.text(f"The paper: {_PAPER}")
