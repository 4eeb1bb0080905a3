"""``plstream info``: what a file of a model or of data holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Columns, DataFormat, Delimiter, Exclude, Format, Header, Target, as_list, open_data, quoted


def info(
    file: Annotated[str, typer.Argument(metavar="MODEL|DATA", help="A model, or data: file, folder, pattern.")],
    target: Target = None,
    columns: Columns = None,
    exclude: Exclude = None,
    data_format: DataFormat = None,
    header: Header = None,
    delimiter: Delimiter = None,
) -> None:
    """Show what a model or data is: sizes, names, parameters.

    \b
    plstream info model.plstream
    plstream info spectra.csv --target moisture
    """
    from .._core.errors import printable

    if data_format is None and _is_model(Path(file)):
        from ..files import load

        if target or columns or exclude:
            raise ValueError(f"{file} is a model, which has no columns to choose: leave out what is for data.")
        facts = _of_loaded(load(file))
    else:
        facts = _of_data(file, target, columns, exclude, data_format, header, delimiter)
    width = max(map(len, facts)) + 1
    for name, fact in facts.items():
        # Names of features and labels may hold anything, also what would steer a terminal.
        typer.echo(printable(f"{(name + ':').ljust(width)} {fact}"))


def _is_model(path: Path) -> bool:
    """Return whether a file is named or begins like a model: eight bytes with the length of a header of JSON."""
    from ..files.container import LONGEST_HEADER

    if not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(9)
    length = int.from_bytes(begin[:8], "little")
    return path.suffix == ".plstream" or (begin[8:] == b"{" and length <= min(LONGEST_HEADER, path.stat().st_size))


def _of_loaded(loaded: Any) -> dict[str, Any]:
    from ..monitoring import DriftTracker, Monitor

    if not isinstance(loaded, Monitor | DriftTracker):
        return _of_model(loaded)
    facts: dict[str, Any] = {"class": type(loaded).__name__}
    if isinstance(loaded, Monitor):
        facts["level"] = f"{loaded.level:g}, with {loaded.n_reference_rows_:,} reference row(s)"
    else:
        facts["batches"] = f"{loaded.n_batches_:,}, with {len(loaded.alarms_):,} alarm(s)"
        facts["changed"] = ", ".join(loaded.changed_) or "nothing"
    return facts | {f"model {name}": fact for name, fact in _of_model(loaded.model).items()}


def _of_model(model: Any) -> dict[str, Any]:
    from sklearn.utils.validation import check_is_fitted

    from ..data.columns import listed
    from .progress import summary

    facts: dict[str, Any] = {"class": type(model).__name__}
    facts["parameters"] = ", ".join(f"{name}={value!r}" for name, value in model.get_params(deep=False).items())
    if hasattr(model, "get_support"):
        facts["kept"] = f"{int(model.support_.sum()):,} of {model.n_features_in_:,} features"
    elif hasattr(model, "n_samples_seen_"):
        check_is_fitted(model)
        facts["fitted"] = summary(model)
    if hasattr(model, "feature_names_in_"):
        facts["features"] = listed(model.feature_names_in_)
    if hasattr(model, "classes_"):
        facts["classes"] = listed(model.classes_)
    return facts


def _of_data(
    data: str,
    target: list[str] | None,
    columns: list[str] | None,
    exclude: list[str] | None,
    data_format: Format | None,
    header: bool | None,
    delimiter: str | None,
) -> dict[str, Any]:
    from .._core.memory import format_bytes
    from ..data.columns import listed
    from ..data.opening import text_columns
    from .progress import shown

    text: list[str] = []
    if not columns and data != "-":
        # Columns of text that no option names: one looks at data before one knows what to leave out.
        format_name = None if data_format is None else data_format.value
        found = text_columns(data, format=format_name, header=header, delimiter=delimiter)
        text = [name for name in found if name not in {*as_list(target), *as_list(exclude)}]
    excluded = [*(exclude or []), *map(quoted, text)]
    source = open_data(data, target, columns, excluded, data_format, header, delimiter)
    with shown():
        n_rows = source.count()
    facts = {
        "data": source.name,
        "rows": f"{n_rows:,}",
        "features": f"{source.n_columns:,} of {source.dtype}",
        "in memory": format_bytes(n_rows * source.n_columns * source.dtype.itemsize),
    }
    if source.feature_names is not None:
        facts["names"] = listed(source.feature_names)
    if text:
        facts["text"] = f"{listed(text)}: to be left out by --exclude"
    if source.n_targets:
        facts["targets"] = listed(source.target_names or [f"{source.n_targets} column(s)"])
    return facts
