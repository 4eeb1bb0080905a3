"""``plstream evaluate``: how good the predictions of a model are."""

from __future__ import annotations

from .options import Columns, Data, DataFormat, Delimiter, Exclude, Header, Model, Target, load_model, open_data


def evaluate(
    model: Model,
    data: Data,
    target: Target = None,
    columns: Columns = None,
    exclude: Exclude = None,
    data_format: DataFormat = None,
    header: Header = None,
    delimiter: Delimiter = None,
) -> None:
    """Compare predictions with what is true: R2 and RMSE of each target, or the accuracy of labels.

    \b
    plstream evaluate model.plstream test.csv --target moisture
    plstream evaluate model.plstream test.npy --target labels.npy
    """
    from .._core.metrics import Metrics, metrics_for
    from .output import in_blocks, print_table
    from .progress import shown

    if not target:
        raise ValueError("Say what is true with --target: a column, or a file.")
    loaded = load_model(model)
    source = open_data(data, target, columns, exclude, data_format, header, delimiter, loaded)
    metrics: Metrics | None = None
    if not hasattr(loaded, "predict"):
        raise ValueError(f"{type(loaded).__name__} has no predictions, only scores: use plstream transform.")
    with shown():
        for predicted, y in in_blocks(source, loaded.predict):
            assert y is not None
            metrics = metrics_for(loaded, y) if metrics is None else metrics
            metrics.add(y, predicted)
    assert metrics is not None
    print_table(metrics.table(source.target_names or [str(k) for k in range(source.n_targets)]))
