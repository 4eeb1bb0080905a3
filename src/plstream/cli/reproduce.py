"""``plstream reproduce``: reproduction of the experiments of the CIPLS paper."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.urls import local_path
from ..experiments.paper import MODULES
from .options import as_list

if TYPE_CHECKING:
    from ..experiments.paper import Experiment
    from ..experiments.plan import Part
    from ..experiments.task import Task

_NAMES = ("all", *MODULES)
Classifier = StrEnum("Classifier", ["svm", "perceptron"])


def _known_experiment(name: str) -> str:
    if name not in _NAMES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, _NAMES))}.")
    return name


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            callback=_known_experiment,
            autocompletion=lambda incomplete: [name for name in _NAMES if name.startswith(incomplete)],
            help=", ".join(_NAMES) + ".",
        ),
    ] = "all",
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|DIR|FILE",
            help="digits, lfw, ytf, imagenet32, imagenet224, tiny-imagenet, or features of your own. May be repeated. "
            "Default: digits.",
        ),
    ] = None,
    methods: Annotated[list[str] | None, typer.Option(metavar="A,B", help="Methods to compare. Default: all.")] = None,
    folds: Annotated[int | None, typer.Option(min=1, help="Number of splits to use. Default: all.")] = None,
    components: Annotated[int | None, typer.Option(min=1, help="Largest number of components. Default: 10.")] = None,
    directions: Annotated[
        int | None,
        typer.Option(
            metavar="L", min=1, help="Principal components that IPLS keeps. Default: 10, 20 or 40, by validation."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="T", min=1, max=1000, help="Passes, or steps per row, of SGDPLS as released. Default: 100."
        ),
    ] = None,
    classifier: Annotated[
        Classifier | None,
        typer.Option(help="Classifier of the scores. Default: an SVM for two classes, a perceptron for more."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Largest number of epochs of a perceptron, or of an SVM trained in blocks. Default: 100."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the random numbers.")] = 0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Cells to run in parallel. Default: number of cores.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            min=0,
            help="Minutes that the run may take: fewer splits or methods are run if necessary.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")] = Path(
        "reproduced"
    ),
    force: Annotated[bool, typer.Option("--force", help="Start over if the folder has other results.")] = False,
) -> None:
    """Reproduce the experiments of the CIPLS paper: tables, figures, and an HTML report, DIR/report.html.

    By default, all experiments on the digits of scikit-learn, which takes about three minutes. Other data is expected
    in the folder PLSTREAM_DATA, or in ~/plstream_data. An interrupted run resumes with the same command.

    \b
    plstream reproduce -o digits
    plstream reproduce accuracy --data lfw --folds 3 -o lfw
    plstream reproduce selection --data features.npz --methods pls-vip,cipls-vip
    plstream reproduce --data lfw --data tiny-imagenet --budget 60 -o faces_and_images
    plstream reproduce accuracy --data imagenet224 --components 4 --steps 1 --jobs 1 -o imagenet
    """
    import os

    from ..experiments.datasets import load_tasks
    from ..experiments.outputs import tables_of, write_outputs
    from ..experiments.paper import experiments
    from ..experiments.plan import make_plan, within_budget
    from ..experiments.results import Results
    from ..experiments.runner import run
    from ..experiments.settings import Settings
    from ..files.files import locked_folder
    from .errors import FAILED, tell
    from .progress import shown

    given: dict[str, Any] = {
        "components": components,
        "directions": directions,
        "steps": steps,
        "classifier": classifier,
        "epochs": epochs,
    }
    changed = given | {"ipls_directions": None if directions is None else (directions,)}
    settings = replace(
        Settings(), **{name: value for name, value in changed.items() if value is not None and name != "directions"}
    )
    chosen = [one for name, one in experiments().items() if experiment in {"all", name}]
    wanted = _known_methods(as_list(methods), chosen)
    jobs = jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else jobs or os.cpu_count() or 1
    output = local_path(output)
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"{output} is a file: name a folder to write to.")
    tasks: list[Task] = [task for name in dict.fromkeys(data or ["digits"]) for task in load_tasks(name, seed=seed)]
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output, seed, settings, force=force)
    options = {"data": data, "methods": methods, "folds": folds, **given, "seed": seed, "budget": budget}
    results.made_by(_as_typed(experiment, {**options, "output": output}))
    for task in tasks:
        results.begin(task, force=force)
    # Results of two runs would be mixed.
    in_use = ValueError(f"{output} is in use by another run: wait until it has ended, or name another folder.")
    try:
        with locked_folder(output, in_use):
            with shown():
                parts = make_plan(tasks, chosen, methods=wanted, folds=folds, settings=settings, seed=seed, jobs=jobs)
            if budget is not None:
                parts = within_budget(parts, budget, jobs)
            _show_plan(parts, jobs)
            with shown():
                run(
                    parts,
                    results,
                    jobs=jobs,
                    budget=budget,
                    on_finished=lambda name: typer.echo(
                        "\n".join(table.as_text() for table in tables_of(results.data, name))
                    ),
                )
    except KeyboardInterrupt:
        tell(f"plstream: interrupted; run the same command to resume from {results.path}.")
        raise typer.Exit(FAILED) from None
    with shown():
        files, missing = write_outputs(results.data, output)
    written, figures = ([file for file in files if (file.parent == output) == here] for here in (True, False))
    in_short = [f"{figures[0].parent} ({len(figures)} files)"] if figures else []
    typer.echo(f"Written: {', '.join([*map(str, [results.path, *written]), *in_short])}")
    if missing:
        typer.echo(f"No figures: {missing}")
    if any(part.methods for part in parts) and results.is_empty:
        tell("plstream: nothing could be computed; the tables say why.")
        raise typer.Exit(FAILED)


def _known_methods(names: list[str], experiments: list[Experiment]) -> list[str] | None:
    """Return the requested methods, None for all; raise ValueError for one that no experiment has."""
    known = dict.fromkeys(method for experiment in experiments for method in experiment.methods)
    for name in names:
        if name not in known:
            raise ValueError(f"--methods {name} is not one of {', '.join(known)}.")
    return names or None


def _show_plan(parts: list[Part], jobs: int) -> None:
    """Print the experiments to run, their time and memory, and where they fall short of the request."""
    from .._core.errors import counted
    from .._core.memory import format_bytes
    from ..experiments.plan import format_duration, planned_seconds

    for part in parts:
        size = f"{len(part.methods)} methods, {counted(part.n_splits, 'split')}"
        cost = f"about {format_duration(planned_seconds([part], jobs))}, {format_bytes(part.largest_memory)} per cell"
        typer.echo(f"{part.experiment.name}, {part.task.name}: {size}; {cost}")
        if part.note:
            typer.echo(f"  only {part.note}")
        for method, why in part.skipped.items():
            if why.startswith("not run"):
                typer.echo(f"  {method}: {why}")
    total = format_duration(planned_seconds(parts, jobs))
    typer.echo(f"Together about {total} with {counted(jobs, 'cell')} at a time, if none has been computed before.\n")


def _as_typed(experiment: str, options: dict[str, Any]) -> str:
    """Return the command with the given options."""
    import shlex

    words = ["plstream", "reproduce", experiment]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name}", str(one)] if one is not None else []
    return shlex.join(words)
