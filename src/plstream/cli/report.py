"""``plstream report``: an HTML report about a model and its results on data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._core.urls import shown as name_of
from .options import Force, Model, Reading, Target, load_model


def report(
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="Rows to evaluate the model on, preferably not its training rows."),
    ] = None,
    target: Target = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")] = Path(
        "report.html"
    ),
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Write an HTML report about a model: what it is, how well it predicts, which features matter, and what to check.

    The report is a single file that works offline. Data is read block by block; if there are many rows, plots show a
    sample.

    \b
    plstream report model.plstream -o report.html
    plstream report model.plstream test.csv --target moisture -o report.html
    """
    from ..report import model_report
    from ..report.html import scripts
    from .errors import tell
    from .output import STANDARD_OUTPUT, require_free, require_inputs
    from .progress import is_shown, shown

    if str(output) == STANDARD_OUTPUT:
        raise ValueError("Name the report with --output, such as report.html.")
    require_inputs(model, data)
    require_free(output, force=force, endings=(".html", ".htm"))
    # Before any work.
    scripts()
    loaded = load_model(model)
    if data is None:
        given = [*(["--target"] if target else []), *reading.given]
        if given:
            raise ValueError(f"{given[0]} applies to data, but no data is given: name a file after the model.")
        page = model_report(loaded, title=model.name)
    else:
        source = reading.open(data, target, loaded)
        with shown():
            page = model_report(loaded, source, title=model.name)
    page.write(output, overwrite=force)
    if is_shown():
        tell(f"{name_of(output)}: a report about {name_of(model)}, to open in a browser")
