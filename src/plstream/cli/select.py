"""``plstream select``: feature selection."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Data, Force, Method, Reading, Target

if TYPE_CHECKING:
    from ..data import Source


# The names of selectors in this package, and on the command line.
Ranking = StrEnum(
    "Ranking", {"VIPSelector": "vip", "InfFS": "inffs", "InfFSU": "inffs-u", "InfFSS": "inffs-s", "ILFS": "ilfs"}
)
PlsModel = StrEnum(
    "PlsModel",
    {
        "incremental_pls": "incremental-pls",
        "incremental_pls_classifier": "incremental-pls-classifier",
        "cipls": "cipls",
        "olpls": "olpls",
    },
)
_ENDINGS = (".csv", ".json")


def select(
    data: Data,
    target: Target = None,
    method: Annotated[Ranking, typer.Option(help="Ranking method.")] = Ranking.VIPSelector,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE", help="Number of features to keep, or a share such as 0.1. Default: that of the method."
        ),
    ] = None,
    components: Annotated[
        int | None, typer.Option("--components", "-c", min=1, help="Number of components. Default: 2.")
    ] = None,
    model: Annotated[
        PlsModel, typer.Option(help="PLS model for vip. All except incremental-pls require labels.")
    ] = PlsModel.incremental_pls,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="File to write, .csv or .json. Default: CSV on standard output."
        ),
    ] = None,
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Rank the features and print those kept, the best first, with their scores.

    vip reads data of any size; the other methods require all rows in memory. inffs and inffs-u use no target.

    \b
    plstream select spectra.csv --target moisture --keep 20
    plstream select features.npy --target labels.npy --method inffs-s --keep 0.1 -o kept.json
    """
    import numpy as np

    import plstream

    from ..files import fit_source
    from .methods import new_model
    from .output import require_free, require_inputs
    from .progress import shown

    selector = getattr(plstream, method.name)(n_features_to_select=_as_number(keep))
    if not target and selector.__sklearn_tags__().target_tags.required:
        raise ValueError(f"--method {method} requires --target: a column by name or number, or a file.")
    if method is not Ranking.VIPSelector and (components is not None or model is not PlsModel.incremental_pls):
        raise ValueError(f"-c and --model are for --method vip: leave them out with {method}.")
    require_inputs(data)
    place = Path("-") if output is None else output
    require_free(place, force=force, endings=_ENDINGS, or_printed=True)
    source = reading.open(data, target)
    with shown():
        if method is Ranking.VIPSelector:
            estimator = new_model(Method(model.value), n_components=components)
            fit_source(estimator, source, one_pass=not source.rereadable)
            selector.set_params(estimator=estimator, prefit=True)
        else:
            _fit_in_memory(selector, source, f"--method {method}")
    kept, names = selector.get_support(indices=True), source.feature_names
    kept = kept[np.argsort(selector.ranking_[kept])]
    rows = [
        {"feature": str(j) if names is None else names[j], "column": int(j), "score": float(selector.scores_[j])}
        for j in kept
    ]
    _write(rows, place, force=force)


def _fit_in_memory(selector: Any, source: Source, name: str) -> None:
    """Fit a selector to all rows in memory."""
    import numpy as np

    from .._core.memory import require_memory

    mapped = source.mapped()
    if mapped is None:
        needed = 2 * (source.n_rows or 0) * source.n_columns * source.dtype.itemsize
        require_memory(needed, f"{name}, which requires all rows in memory,")
        blocks = list(source.blocks())
        if not blocks:
            raise source.no_rows()
        X = np.concatenate([X for X, _ in blocks])
        y = None if blocks[0][1] is None else np.concatenate([y for _, y in blocks if y is not None])
    else:
        X, y = mapped
    selector.fit(X, y)
    if mapped is not None:
        source.require_unchanged()


def _as_number(keep: str | None) -> float | None:
    """Return a number of features as int, a share as float."""
    if keep is None:
        return None
    try:
        number = float(keep) if "." in keep or "e" in keep.lower() else int(keep)
    except ValueError:
        number = 0
    if not (number >= 1 if isinstance(number, int) else 0 < number <= 1):
        raise ValueError(f"--keep {keep} is neither a number of features such as 20 nor a share such as 0.1.")
    return number


def _write(rows: list[dict[str, Any]], output: Path, *, force: bool) -> None:
    import json

    from .output import opened_output, write_table

    with opened_output(output, force=force) as file:
        if output.suffix == ".json":
            file.write((json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode())
        else:
            write_table(file, list(rows[0]), rows)
