"""``plstream transform``: scores of rows."""

from __future__ import annotations

from .options import Columns, Data, DataFormat, Delimiter, Exclude, Force, Header, Model, Output


def transform(
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
    """Compute the scores of rows with a model, block by block.

    If model and data have names of features, they are found by name, and other columns are left alone.

    \b
    plstream transform model.plstream new.parquet -o scores.parquet
    cat new.csv | plstream transform model.plstream - --format csv | head
    """
    from .output import apply

    apply("transform", model, data, output, force, columns, exclude, data_format, header, delimiter)
