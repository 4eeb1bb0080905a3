"""``plstream transform``: scores of rows."""

from __future__ import annotations

from .options import Data, Force, Keep, Model, Output, Reading, load_model


def transform(
    model: Model,
    data: Data,
    output: Output = "-",
    keep: Keep = None,
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Compute the scores of rows with a model, block by block.

    If model and data have feature names, columns are matched by name and other columns are ignored.

    \b
    plstream transform model.plstream new.parquet -o scores.parquet
    cat new.csv | plstream transform model.plstream - --format csv | head
    """
    from .output import require_free, require_inputs
    from .results import ENDINGS, Results, write_results

    require_inputs(model, data)
    require_free(output, force=force, endings=ENDINGS, or_printed=True)
    loaded = load_model(model)
    results = Results(reading, data, loaded, keep)
    results.add([str(name) for name in loaded.get_feature_names_out()], loaded.transform)
    write_results(results, output, force=force)
