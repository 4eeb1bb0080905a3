"""``plstream predict``: values or labels of rows."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import Data, Force, Keep, Model, Output, Reading, load_model


def predict(
    model: Model,
    data: Data,
    output: Output = "-",
    keep: Keep = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(metavar="LEVEL", help="Add prediction intervals with this probability, such as 0.95."),
    ] = None,
    t2: Annotated[
        bool, typer.Option("--t2", help="Add Hotelling's T2, large for rows that are extreme within the model.")
    ] = False,
    q: Annotated[
        bool, typer.Option("--q", help="Add Q, large for rows that vary in directions outside of the model.")
    ] = False,
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Predict values or labels of rows with a model, block by block.

    If model and data have feature names, columns are matched by name and other columns are ignored.

    \b
    plstream predict model.plstream new.csv -o predictions.csv
    plstream predict model.plstream new.csv --keep id --interval 0.95 --t2 --q -o predictions.parquet
    cat new.ndjson | plstream predict model.plstream - --format ndjson --proba
    """
    import numpy as np

    from ..monitoring import Monitor, PredictionInterval
    from .output import require_free, require_inputs
    from .results import ENDINGS, Results, write_results

    require_inputs(model, data)
    require_free(output, force=force, endings=ENDINGS, or_printed=True)
    loaded = load_model(model)
    if not hasattr(loaded, "predict"):
        raise ValueError(f"{type(loaded).__name__} makes no predictions, only scores: use plstream transform.")
    results = Results(reading, data, loaded, keep)
    n_targets = len(loaded.intercept_) if hasattr(loaded, "intercept_") and not hasattr(loaded, "classes_") else 1
    names = ["prediction"] if n_targets == 1 else [f"prediction{k}" for k in range(n_targets)]
    results.add(names, loaded.predict)
    if proba:
        if not hasattr(loaded, "predict_proba"):
            raise ValueError(f"{type(loaded).__name__} has no class probabilities: leave out --proba.")
        results.add([f"probability_{label}" for label in loaded.classes_], loaded.predict_proba)
    if interval is not None:
        limits = PredictionInterval(loaded, level=interval)
        # Lower and upper limits of a response are adjacent columns.
        columns = [f"{name}_{side}" for name in names for side in ("lower", "upper")]
        results.add(columns, lambda X: np.stack(limits.of(X), axis=-1).reshape(len(X), -1))
    if t2 or q:
        monitor, both = Monitor(loaded), {"t2": t2, "q": q}

        def statistics(X: Any) -> Any:
            checked = monitor.check(X)
            return np.column_stack([getattr(checked, name) for name in both if both[name]])

        results.add([name for name in both if both[name]], statistics)
    write_results(results, output, force=force)
