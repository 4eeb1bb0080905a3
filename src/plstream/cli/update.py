"""``plstream update``: further training of a model."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.urls import shown as name_of
from .options import AsJson, Data, DryRun, Model, Reading, Roles, Target

if TYPE_CHECKING:
    from ..data import Source


def update(
    model: Model,
    data: Data,
    target: Target = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="MODEL", help="File to write. Default: the model itself.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of -o if it exists.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    *,
    roles: Roles,
    reading: Reading,
) -> None:
    """Continue the training of a model with more rows.

    The model file is replaced when all rows are learnt; if anything fails, it is left unchanged. To end a pipe, press
    Ctrl-C: the model is written. A model with groups or folds requires those of the new rows.

    \b
    plstream update model.plstream monday.csv --target moisture
    tail -f log.ndjson | plstream update model.plstream - --format ndjson --target y
    """
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted

    from .._core.errors import counted
    from ..files import load, save
    from .errors import FAILED, signals_to_stop, tell
    from .output import facts_of, format_facts, print_model, require_free, require_inputs
    from .progress import shown

    require_inputs(model, data)
    if output is not None:
        require_free(output, force=force)
    loaded = load(model)
    if not hasattr(loaded, "partial_fit") or not hasattr(loaded, "n_samples_seen_"):
        raise ValueError(f"{name_of(model)} contains a {type(loaded).__name__}, which cannot be updated: pass a model.")
    check_is_fitted(loaded)
    if not target and get_tags(loaded).target_tags.required:
        raise ValueError("Pass the target with --target: a column by name or number, or a file.")
    source = reading.open(data, target, loaded, **roles.options(validates=hasattr(loaded, "cv")))
    before = loaded.n_samples_seen_
    if dry_run:
        so_far = f"{name_of(model)}: {format_facts(facts_of(loaded))}"
        typer.echo(f"{so_far}; would learn from {source.name}; nothing is written in a dry run")
        return
    with shown(), signals_to_stop() as stop:
        is_stopped = _learn(loaded, source, stop)
    if is_stopped and (source.rereadable or loaded.n_samples_seen_ == before):
        tell("plstream: interrupted; nothing was written.")
        raise typer.Exit(FAILED)
    if is_stopped:
        tell("plstream: interrupted.")
    place, n_new = model if output is None else output, loaded.n_samples_seen_ - before
    save(loaded, place, overwrite=output is None or force)
    more = {"data": source.name, "n_new_rows": n_new}
    print_model(place, loaded, more, as_json=as_json, note=f"; {counted(n_new, 'new row')}")


def _learn(model: Any, source: Source, stop: Any) -> bool:
    """Learn from one block after another, and return whether training was stopped."""
    from .._core.progress import listening, track

    row = 0
    records = track(source.records(), "one read", source.n_rows, lambda record: len(record[0]))
    with closing(records):
        for record in records:
            n_rows = len(record[0])
            if n_rows:
                with listening(None):
                    model.partial_fit(source.part(record, row))
            row += n_rows
            if stop():
                return True
    if not row:
        raise source.no_rows()
    return False
