"""``plstream fit``: a model of data in files, or of a stream."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    Columns,
    Components,
    Data,
    DataFormat,
    Delimiter,
    Exclude,
    Force,
    Header,
    Memory,
    Method,
    Target,
    as_bytes,
    as_classes,
    open_data,
)

if TYPE_CHECKING:
    from ..data import Source


def fit(
    data: Data,
    target: Target = None,
    components: Components = None,
    method: Annotated[Method, typer.Option("--method", help="What to fit.")] = Method.incremental_pls,
    one_pass: Annotated[
        bool, typer.Option("--one-pass", help="Read the data once, also if it can be read again.")
    ] = False,
    memory: Memory = None,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--no-scale", help="Divide columns by their deviations. Default: yes.", show_default=False
        ),
    ] = None,
    forgetting: Annotated[
        float | None,
        typer.Option("--forgetting", help="Factor by which a row weighs less for each row after it, such as 0.999."),
    ] = None,
    sketch_size: Annotated[
        int | None,
        typer.Option("--sketch-size", min=2, help="Rows that stand for all in one pass. Default: by itself."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="A,B", help="All labels that will come, for labels on standard input."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=2**32 - 1,
            help="Of the random numbers that sgdpls begins with. Default: 0.",
            show_default=False,
        ),
    ] = None,
    columns: Columns = None,
    exclude: Exclude = None,
    data_format: DataFormat = None,
    header: Header = None,
    delimiter: Delimiter = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to write.")] = Path(
        "model.plstream"
    ),
    force: Force = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Folder for checkpoints: after a kill the same command goes on from there.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Read the files on Dask's workers: local, local:N for N processes, or tcp://HOST:PORT of a scheduler.",
        ),
    ] = None,
    every_rows: Annotated[
        int | None, typer.Option("--every-rows", min=1, help="Rows from one checkpoint to the next.")
    ] = None,
    every_seconds: Annotated[
        float,
        typer.Option("--every-seconds", min=0, help="Seconds from one checkpoint to the next, if that is sooner."),
    ] = 30.0,
) -> None:
    """Fit a model to data of any size and write it to a file.

    incremental-pls, of numbers, and incremental-pls-classifier, of labels, are exact: they read the data once for each
    component and once more. With --one-pass, and of what can be read only once, they are exact up to 2,048 features,
    and close to it with more. All other methods learn in one pass.

    \b
    plstream fit spectra.csv --target moisture -c 5 -o moisture.plstream
    plstream fit features.npy --target labels.npy --method incremental-pls-classifier -c 10
    plstream fit 'day*.parquet' --target y --exclude id,date --one-pass --memory 512MB
    plstream fit big.npy --target y.npy -c 10 --checkpoint big.checkpoint
    plstream fit 'year/*.parquet' --target y --cluster tcp://scheduler:8786
    cat log.ndjson | plstream fit - --format ndjson --target y -c 3
    """
    from ..files import save
    from .methods import new_model, plan_memory, reads_again, require_options
    from .progress import summary

    labels, allowed = as_classes(classes), as_bytes(memory)
    require_options(method, scale=scale, forgetting=forgetting, sketch_size=sketch_size, classes=labels, seed=seed)
    if not target and method is not Method.ccipca:
        raise ValueError("Say what is to be learnt with --target: a column by name or number, or a file.")
    _require_place(output, checkpoint, every_rows, force=force)
    source = open_data(data, target, columns, exclude, data_format, header, delimiter)
    in_one_pass = one_pass or not source.rereadable or not reads_again(method)
    if sketch_size is not None and not in_one_pass:
        raise ValueError("--sketch-size is for fits in one pass: pass --one-pass as well.")
    model = new_model(
        method,
        seed=seed,
        n_components=components,
        scale=scale,
        forgetting=forgetting,
        sketch_size=sketch_size,
        solver=None if sketch_size is None else "sketch",
    )
    if cluster is not None:
        from .cluster import fit_on_cluster

        fit_on_cluster(cluster, method, model, source, memory, checkpoint, one_pass=in_one_pass, classes=labels)
        save(model, output, overwrite=force)
        line = summary(model)
    else:
        plan_memory(model, source, one_pass=in_one_pass, classes=labels, memory=allowed)
        line = _fit_and_save(
            model,
            source,
            output,
            force,
            checkpoint,
            every_rows=every_rows,
            every_seconds=every_seconds,
            one_pass=in_one_pass,
            classes=labels,
        )
    typer.echo(f"{output}: {line}")


def _fit_and_save(
    model: Any, source: Source, output: Path, force: bool, checkpoint: Path | None, **options: Any
) -> str:
    """Fit a model with progress and checkpoints, save it, and return its summary.

    A signal stops the fit after a last checkpoint. What can be read only once is then saved as it is: to interrupt it
    is the way to end what follows a pipe.
    """
    from ..files import Stopped, fit_source, save
    from .errors import FAILED, signals_to_stop, tell
    from .progress import RunningError, is_shown, shown, summary

    saved: list[str] = []

    def write(fitted: Any) -> None:
        save(fitted, output, overwrite=force)
        saved.append(summary(fitted))

    error = RunningError()
    can_stop = checkpoint is not None or not source.rereadable
    with shown(lambda: str(error)), signals_to_stop() if can_stop else nullcontext() as stop:
        try:
            fit_source(
                model,
                source,
                checkpoint=checkpoint,
                on_block=error if is_shown() else None,
                on_fitted=write,
                on_stopped=None if source.rereadable else write,
                stop=stop,
                **options,
            )
        except Stopped:
            then = f"; the same command goes on from the checkpoint in {checkpoint}" if checkpoint else ""
            if not saved:
                tell(f"plstream: interrupted{then or ', and nothing was written'}.")
                raise typer.Exit(FAILED) from None
            tell(f"plstream: interrupted{then and f'{then}, with --force'}.")
    return saved[0]


def _require_place(output: Path, checkpoint: Path | None, every_rows: int | None, *, force: bool) -> None:
    """Raise ValueError unless the model, and checkpoints if there are to be any, can be written."""
    from .output import require_free

    if str(output) == "-":
        raise ValueError("A model is not for standard output: name a file with -o.")
    if checkpoint is None and every_rows is not None:
        raise ValueError("--every-rows is for checkpoints: pass --checkpoint DIR as well.")
    if output.exists() and not force and checkpoint is not None and any(checkpoint.glob("checkpoint-*.plstream")):
        raise ValueError(f"{output} exists already, and so do checkpoints: pass --force to go on from there.")
    require_free(output, force=force)
