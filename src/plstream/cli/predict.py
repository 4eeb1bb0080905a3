"""``plstream predict``: values or labels of rows."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import Data, Force, Keep, Model, Output, Reading


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
    from .options import load_model
    from .output import require_free, require_inputs
    from .results import Results, write_results

    require_inputs(model, data)
    require_free(output, force=force, endings=Results.ENDINGS)
    loaded = load_model(model)
    if not hasattr(loaded, "predict"):
        raise ValueError(f"{type(loaded).__name__} makes no predictions, only scores: use plstream transform.")
    results = Results(reading, data, loaded, keep)
    names = _names_of(loaded)
    results.add(names, loaded.predict)
    if proba:
        if not hasattr(loaded, "predict_proba"):
            raise ValueError(f"{type(loaded).__name__} has no class probabilities: leave out --proba.")
        results.add([f"probability_{label}" for label in loaded.classes_], loaded.predict_proba)
    if interval is not None:
        _add_limits(results, loaded, names, interval)
    if t2 or q:
        _add_statistics(results, loaded, t2=t2, q=q)
    write_results(results, output, force=force)


def _names_of(model: Any) -> list[str]:
    n_targets = len(model.intercept_) if hasattr(model, "intercept_") and not hasattr(model, "classes_") else 1
    return ["prediction"] if n_targets == 1 else [f"prediction{k}" for k in range(n_targets)]


def _add_limits(results: Any, model: Any, names: list[str], level: float) -> None:
    import numpy as np

    from ..monitoring import PredictionInterval

    limits = PredictionInterval(model, level=level)

    def both(X: Any) -> Any:
        lower, upper = limits.of(X)
        # Lower and upper limits of a response are adjacent columns.
        return np.stack([lower, upper], axis=-1).reshape(len(lower), -1)

    results.add([f"{name}_{side}" for name in names for side in ("lower", "upper")], both)


def _add_statistics(results: Any, model: Any, *, t2: bool, q: bool) -> None:
    import numpy as np

    from ..monitoring import Monitor

    monitor = Monitor(model)

    def statistics(X: Any) -> Any:
        checked = monitor.check(X)
        return np.column_stack([values for values, asked in ((checked.t2, t2), (checked.q, q)) if asked])

    results.add([name for name, asked in (("t2", t2), ("q", q)) if asked], statistics)
