"""``plstream export``: a model as an ONNX graph."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import Force, Model, load_model

Part = StrEnum("Part", ["transform", "predict"])
Precision = StrEnum("Precision", ["float32", "float64"])


def export(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")] = Path("model.onnx"),
    method: Annotated[
        Part | None, typer.Option(help="Export only this method. Default: all that the model has.")
    ] = None,
    dtype: Annotated[Precision, typer.Option(help="Type of the numbers.")] = Precision.float32,
    force: Force = False,
) -> None:
    """Export a model as an ONNX graph, to run without Python.

    \b
    plstream export model.plstream -o model.onnx
    """
    from ..files import export_onnx
    from .output import require_free, require_inputs

    require_inputs(model)
    require_free(output, force=force)
    if output.exists() and model.exists() and output.samefile(model):
        raise ValueError(f"{output} is the model itself: choose another file to write.")
    export_onnx(
        load_model(model), output, method=None if method is None else method.value, dtype=dtype.value, overwrite=force
    )
