"""``plstream predict``: values or labels of rows."""

from __future__ import annotations

from .options import Columns, Data, DataFormat, Delimiter, Exclude, Force, Header, Model, Output


def predict(
    model: Model,
    data: Data,
    output: Output = "-",
    columns: Columns = None,
    exclude: Exclude = None,
    data_format: DataFormat = None,
    header: Header = None,
    delimiter: Delimiter = None,
    force: Force = False,
) -> None:
    """Predict values or labels of rows with a model, block by block.

    If model and data have names of features, they are found by name, and other columns are left alone.

    \b
    plstream predict model.plstream new.csv -o predictions.csv
    plstream predict model.plstream new.npy -o predictions.npy
    cat new.ndjson | plstream predict model.plstream - --format ndjson
    """
    from .output import apply

    apply("predict", model, data, output, force, columns, exclude, data_format, header, delimiter)
