"""``plstream evaluate``: the accuracy of the predictions of a model."""

from __future__ import annotations

from .options import AsJson, Data, Model, Reading, Target, load_model


def evaluate(
    model: Model,
    data: Data,
    target: Target = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Compare predictions with the true target: R2, RMSE, SEP, bias, slope and RPD per response, or the accuracy.

    If the model was fitted with --missing, rows without a target are left out.

    \b
    plstream evaluate model.plstream test.csv --target moisture
    plstream evaluate model.plstream test.npy --target labels.npy --json
    """
    from .._core.metrics import Metrics, added, with_values
    from .output import print_json, print_table, require_inputs
    from .progress import shown
    from .results import in_blocks

    if not target:
        raise ValueError("Pass the true target with --target: a column, or a file.")
    require_inputs(model, data)
    loaded = load_model(model)
    source = reading.open(data, target, loaded)
    metrics: Metrics | None = None
    if not hasattr(loaded, "predict"):
        raise ValueError(f"{type(loaded).__name__} makes no predictions, only scores: use plstream transform.")
    with shown():
        for predicted, y, *_ in in_blocks(source, loaded.predict):
            assert y is not None
            known = with_values(y) if source.allow_missing else slice(None)
            metrics = added(metrics, loaded, y[known], predicted[known])
    if metrics is None:
        raise ValueError(f"No row of {source.name} has a value for every target, so there is nothing to compare with.")
    table = metrics.table(source.target_names or [str(k) for k in range(source.n_targets)])
    if as_json:
        print_json({"model": str(model), "data": source.name, "targets": table})
    else:
        print_table(table)
