"""``plstream fit``: a model of data in files, or of a stream."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.urls import shown as name_of
from .options import (
    AsJson,
    Data,
    DryRun,
    Force,
    Method,
    Reading,
    Roles,
    Target,
    as_bytes,
    as_classes,
    as_columns,
    as_components,
)

if TYPE_CHECKING:
    from ..data import Source


Rule = StrEnum("Rule", {"min": "min", "one_se": "one-se"})
Missing = StrEnum("Missing", ["error", "model", "mean"])


@dataclass(frozen=True)
class Validation:
    """Options of ``-c auto``."""

    max_components: Annotated[
        int | None, typer.Option(min=1, help="Largest number of components that -c auto tries. Default: 10.")
    ] = None
    folds: Annotated[int | None, typer.Option(min=2, help="Folds of the cross-validation of -c auto. Default: 5.")] = (
        None
    )
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="Take the number with the smallest error, or the fewest within one standard error of it. Default: min."
        ),
    ] = None


@dataclass(frozen=True)
class Checkpoints:
    """Location and frequency of checkpoints."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for checkpoints: if the process is killed, the same command resumes."),
    ] = None
    every_rows: Annotated[int | None, typer.Option(min=1, help="Rows between checkpoints.")] = None
    every_seconds: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints, if that is sooner.")] = 30.0


@dataclass(frozen=True)
class Parameters:
    """Parameters of methods; None for the default."""

    scale: Annotated[
        bool | None, typer.Option(help="Scale columns to unit variance. Default: yes.", show_default=False)
    ] = None
    forgetting: Annotated[
        float | None,
        typer.Option(help="Factor by which the weight of a row shrinks with every later row, such as 0.999."),
    ] = None
    sketch_size: Annotated[
        int | None, typer.Option(min=2, help="Rows that summarise the data in one pass. Default: automatic.")
    ] = None
    read_tol: Annotated[
        float | None,
        typer.Option(min=0, help="Estimated error at which to stop reading, such as 1e-4. Default: exact."),
    ] = None
    max_reads: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of reads of the data. Default: components plus one.")
    ] = None
    missing: Annotated[
        Missing | None,
        typer.Option(
            help="Complete missing values by the model, or by means in methods that learn row by row. "
            "Rows without a target are left out. Default: error."
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**32 - 1, help="Seed of the initial directions of sgdpls. Default: 0."),
    ] = None


def fit(
    data: Data,
    target: Target = None,
    components: Annotated[
        str | None,
        typer.Option(
            "--components",
            "-c",
            metavar="N|auto",
            help="Number of components, or auto: chosen by cross-validation in the same pass. Default: 2.",
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="Method to fit.")] = Method.IncrementalPLS,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to write.")] = Path(
        "model.plstream"
    ),
    force: Force = False,
    one_pass: Annotated[
        bool, typer.Option("--one-pass", help="Read the data only once, even if it can be read again.")
    ] = False,
    memory: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Memory limit for model and blocks, such as 512MB or 2GiB.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="All labels that will occur, if labels are read from standard input."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Read the files on Dask's workers: local, local:N for N processes, or tcp://HOST:PORT of a scheduler.",
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLS", help="Categorical columns: one feature per level."),
    ] = None,
    *,
    roles: Roles,
    validation: Validation,
    parameters: Parameters,
    checkpoints: Checkpoints,
    reading: Reading,
) -> None:
    """Fit a model to data of any size and write it to a file.

    incremental-pls, for numbers, and incremental-pls-classifier, for labels, are exact: they read the data once per
    component plus once (with -c auto, at most two reads more), or with --read-tol as often as the error requires. With
    --one-pass, for data that can be read only once, and if -c auto comes with --checkpoint or --cluster, they are exact
    up to 2,048 features, and close to exact with more. All other methods learn in one pass.

    \b
    plstream fit spectra.csv --target moisture -c 5 -o moisture.plstream
    plstream fit plants.csv --target yield --columns 'sensor_*' --categorical site -c auto
    plstream fit gaps.csv --target yield -c auto --missing model
    plstream fit features.npy --target labels.npy --method incremental-pls-classifier -c 10
    plstream fit 'day*.parquet' --target y --exclude id,date --one-pass --memory 512MB
    plstream fit big.npy --target y.npy -c 10 --checkpoint big.checkpoint
    plstream fit 'year/*.parquet' --target y --cluster tcp://scheduler:8786
    cat log.ndjson | plstream fit - --format ndjson --target y -c 3
    """
    from ..files import save
    from .methods import model_for, plan_memory, reads_again, require_options
    from .output import print_model, require_inputs

    n_components, is_auto = as_components(components), components == "auto"
    labels, allowed = as_classes(classes), as_bytes(memory)
    require_options(method, classes=labels, **asdict(parameters))
    for name, value in asdict(validation).items():
        if value is not None and not is_auto:
            raise ValueError(f"--{name.replace('_', '-')} is for cross-validation: pass -c auto as well.")
    if not target and method is not Method.CCIPCA:
        raise ValueError("Pass the target with --target: a column by name or number, or a file.")
    if checkpoints.checkpoint is None and checkpoints.every_rows is not None:
        raise ValueError("--every-rows is for checkpoints: pass --checkpoint DIR as well.")
    require_inputs(data)
    _require_place(output, checkpoints.checkpoint, force=force)
    source = reading.open(data, target, categorical=as_columns(categorical), **roles.options(validates=is_auto))
    # The states of cross-validation can be kept in checkpoints, exact reads cannot; the workers of a cluster read once.
    once_for_folds = is_auto and (checkpoints.checkpoint is not None or cluster is not None)
    in_one_pass = one_pass or once_for_folds or not source.rereadable or not reads_again(method)
    if (in_one_pass or is_auto) and (parameters.read_tol is not None or parameters.max_reads is not None):
        raise ValueError("--read-tol and --max-reads are for fits that read the data several times, without -c auto.")
    if parameters.sketch_size is not None and not in_one_pass:
        raise ValueError("--sketch-size is for fits in one pass: pass --one-pass as well.")
    model = model_for(method, source.n_columns, n_components, parameters, validation if is_auto else None)
    source.allow_missing = model.missing != "error"
    if cluster is None:
        plan_memory(model, source, one_pass=in_one_pass, classes=labels, memory=allowed)
    if dry_run:
        _tell_plan(model, source, output, one_pass=in_one_pass, classes=labels, as_json=as_json)
        return
    how: dict[str, Any] = {"one_pass": in_one_pass, "classes": labels}
    if cluster is None:
        fitted = _fit_and_save(model, source, output, force, checkpoints, **how)
    else:
        from .cluster import fit_on_cluster

        fitted = fit_on_cluster(cluster, method, model, source, memory, checkpoints.checkpoint, **how)
        save(fitted, output, overwrite=force)
    print_model(output, fitted, {"data": source.name}, as_json=as_json)


def _tell_plan(model: Any, source: Source, output: Path, *, one_pass: bool, classes: Any, as_json: bool) -> None:
    """Print the plan of a fit."""
    from .._core.memory import format_bytes
    from ..data.columns import listed
    from .methods import state_bytes
    from .output import print_facts, print_json

    needed = state_bytes(model, source, one_pass=one_pass, classes=classes)
    plan: dict[str, Any] = {
        "model": repr(model),
        "data": source.name,
        "rows": source.n_rows,
        "features": source.feature_names or source.n_columns,
        "targets": source.target_names or source.n_targets,
        "reads": 1 if one_pass else model.max_components + 3 if hasattr(model, "cv") else model.n_components + 1,
        "memory": needed,
        "output": name_of(output),
    }
    if as_json:
        print_json(plan)
        return
    names = source.feature_names
    texts = {
        "rows": "unknown before they are read" if source.n_rows is None else f"{source.n_rows:,}",
        "features": f"{source.n_columns:,}" + ("" if names is None else f": {listed(names)}"),
        "targets": listed(source.target_names or [source.n_targets]),
        "memory": f"{format_bytes(needed)} for the model, at most",
        "output": f"{name_of(output)}, not written: this is a dry run",
    }
    print_facts(plan | texts)


def _fit_and_save(
    model: Any, source: Source, output: Path, force: bool, checkpoints: Checkpoints, **options: Any
) -> Any:
    """Fit a model with progress and checkpoints, save it, and return it.

    A signal stops the fit after a last checkpoint. If the data can be read only once, the model is then saved, because
    interrupting is the way to end a fit that follows a pipe.
    """
    from ..files import Stopped, fit_source, save
    from .errors import FAILED, signals_to_stop, tell
    from .progress import RunningError, is_shown, shown

    saved: list[Any] = []
    place = checkpoints.checkpoint

    def write(fitted: Any) -> None:
        save(fitted, output, overwrite=force)
        saved.append(fitted)

    error = RunningError()
    can_stop = place is not None or not source.rereadable
    with shown(lambda: str(error)), signals_to_stop() if can_stop else nullcontext() as stop:
        try:
            fit_source(
                model,
                source,
                on_block=error if is_shown() else None,
                on_fitted=write,
                on_stopped=None if source.rereadable else write,
                stop=stop,
                **asdict(checkpoints),
                **options,
            )
        except Stopped:
            then = f"; the same command resumes from the checkpoint in {name_of(place)}" if place else ""
            if not saved:
                tell(f"plstream: interrupted{then or ', and nothing was written'}.")
                raise typer.Exit(FAILED) from None
            tell(f"plstream: interrupted{then and f'{then}, with --force'}.")
    return saved[0]


def _require_place(output: Path, checkpoint: Path | None, *, force: bool) -> None:
    """Raise OSError or ValueError if the model cannot be written, or would be overwritten by a resumed fit."""
    from .._core.remote import path_of
    from ..files.checkpoints import PATTERN
    from .output import require_free

    resumes = checkpoint is not None and any(path_of(checkpoint).glob(PATTERN))
    if resumes and not force and path_of(output).exists():
        raise ValueError(
            f"{name_of(output)} exists already, and so do checkpoints: pass --force to resume the fit and replace it."
        )
    require_free(output, force=force)
