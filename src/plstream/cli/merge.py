"""``plstream merge``: several models merged into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._core.urls import shown as name_of
from .options import AsJson, Force


def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Models with the same features, targets and parameters.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to write.")],
    later: Annotated[
        bool, typer.Option("--later", help="The rows of each model came after those of the models before it.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Merge models into one model of all their rows.

    \b
    plstream merge monday.plstream tuesday.plstream -o week.plstream
    plstream merge 'plant-a.plstream' 'plant-b.plstream' -o all.plstream --json
    """
    import os
    from inspect import signature

    from ..files import load, save
    from .output import print_model, require_free, require_inputs

    if len(models) < 2:
        raise ValueError("Name at least two models to merge.")
    require_inputs(*models)
    resolved = [os.path.realpath(path) for path in models]
    if len({*resolved}) < len(models):
        twice = next(path for i, path in enumerate(models) if resolved[i] in resolved[:i])
        raise ValueError(f"{name_of(twice)} is named twice, so its rows would count twice: name every model once.")
    require_free(output, force=force)
    first, *others = models
    merged = load(first)
    if not hasattr(merged, "merge"):
        raise ValueError(f"{first} holds a {type(merged).__name__}, which cannot be merged.")
    if later and "later" not in signature(merged.merge).parameters:
        raise ValueError(f"--later does not apply to {type(merged).__name__}, which weighs rows equally: leave it out.")
    for path in others:
        other = load(path)
        if type(other) is not type(merged):
            raise ValueError(
                f"{first} holds a {type(merged).__name__}, but {path} holds a {type(other).__name__}: merge models of "
                "one class."
            )
        try:
            merged.merge(other, **({"later": True} if later else {}))
        except ValueError as error:
            raise ValueError(f"{path} cannot be merged with {first}: {error}") from error
    save(merged, output, overwrite=force)
    print_model(output, merged, {"merged": [name_of(path) for path in models]}, as_json=as_json)
