"""``plstream info``: description of a model file or of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Reading, Target, as_list, as_option, quoted

if TYPE_CHECKING:
    from ..data.opening import Column


# Missing values of larger data are not counted, because this takes a full read.
_MOST_BYTES = 2 << 30


def info(
    file: Annotated[str, typer.Argument(metavar="MODEL|DATA", help="A model, or data: file, folder, pattern.")],
    target: Target = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Describe a model or data: sizes, names, types of columns, parameters.

    \b
    plstream info model.plstream
    plstream info spectra.csv
    plstream info spectra.csv --target moisture --json
    """
    from .output import print_facts, print_json

    if reading.data_format is None and _is_model(file):
        from ..files import load

        if target or reading.given:
            raise ValueError(f"{file} is a model: leave out the options for data.")
        facts = _of_loaded(load(file))
        texts = _model_texts(facts)
    else:
        facts = _of_data(file, target, reading)
        texts = _data_texts(facts)
    if as_json:
        print_json({"file": file, **facts})
    else:
        print_facts(texts)


def _is_model(name: str) -> bool:
    """Return whether a file is a model, by its name or its start: eight bytes with the length of a JSON header."""
    from .._core.remote import RemotePath, path_of
    from ..data.sql import is_database
    from ..files.container import LONGEST_HEADER

    if is_database(name):
        return False
    path = path_of(name)
    if isinstance(path, RemotePath) and path.is_pattern:
        return False
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(9)
    length = int.from_bytes(begin[:8], "little")
    return path.suffix == ".plstream" or (begin[8:] == b"{" and length <= min(LONGEST_HEADER, path.stat().st_size))


def _of_loaded(loaded: Any) -> dict[str, Any]:
    """Return the facts about a model, monitor or tracker."""
    from sklearn.utils.validation import check_is_fitted

    from ..monitoring import DriftTracker, Monitor
    from .output import facts_of

    facts: dict[str, Any] = {"class": type(loaded).__name__}
    if isinstance(loaded, Monitor):
        facts |= {"level": loaded.level, "n_reference_rows": loaded.n_reference_rows_}
    elif isinstance(loaded, DriftTracker):
        facts |= {"n_batches": loaded.n_batches_, "n_alarms": len(loaded.alarms_), "changed": list(loaded.changed_)}
    if isinstance(loaded, Monitor | DriftTracker):
        return facts | {"model": _of_loaded(loaded.model)}
    facts["parameters"] = loaded.get_params(deep=False)
    if hasattr(loaded, "get_support"):
        facts |= {"n_kept": int(loaded.support_.sum()), "n_features": int(loaded.n_features_in_)}
    elif hasattr(loaded, "n_samples_seen_"):
        check_is_fitted(loaded)
        facts |= facts_of(loaded)
    if hasattr(loaded, "feature_names_in_"):
        facts["features"] = loaded.feature_names_in_.tolist()
    return facts


def _model_texts(facts: dict[str, Any]) -> dict[str, str]:
    """Return these facts as strings."""
    from .._core.errors import counted
    from ..data.columns import listed
    from .output import format_facts

    texts = {"class": facts["class"]}
    if "level" in facts:
        texts["level"] = f"{facts['level']:g}, with {counted(facts['n_reference_rows'], 'reference row')}"
    if "n_batches" in facts:
        texts["batches"] = f"{facts['n_batches']:,}, with {counted(facts['n_alarms'], 'alarm')}"
        texts["changed"] = ", ".join(facts["changed"]) or "nothing"
    if "model" in facts:
        return texts | {f"model {name}": text for name, text in _model_texts(facts["model"]).items()}
    texts["parameters"] = ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items())
    if "n_kept" in facts:
        texts["kept"] = f"{facts['n_kept']:,} of {counted(facts['n_features'], 'feature')}"
    elif "n_rows" in facts:
        texts["fitted"] = format_facts(facts)
    return texts | {name: listed(facts[name]) for name in ("features", "classes") if name in facts}


def _of_data(data: str, target: list[str] | None, reading: Reading) -> dict[str, Any]:
    from dataclasses import replace

    from ..data.opening import list_columns
    from .progress import shown

    columns: list[Column] = []
    unused: list[str] = []
    if data != "-":
        columns = list_columns(data, **reading.file_options)
        chosen = {*as_list(target), *as_list(reading.exclude)}
        if not reading.columns:
            # Data is inspected before the user knows what to exclude.
            unused = [column.name for column in columns if not column.is_numeric and column.name not in chosen]
    source = replace(reading, exclude=[*(reading.exclude or []), *map(quoted, unused)]).open(data, target)
    with shown():
        n_rows = source.count()
        n_bytes = n_rows * source.n_columns * source.dtype.itemsize
        gaps = _gaps(source) if source.rereadable and n_bytes <= _MOST_BYTES else None
    return {
        "data": source.name,
        "n_rows": n_rows,
        "n_features": source.n_columns,
        "dtype": str(source.dtype),
        "bytes_in_memory": n_bytes,
        "missing": gaps,
        "features": source.feature_names,
        "targets": source.target_names or ([source.n_targets] if source.n_targets else []),
        "columns": [{"name": column.name, "type": column.kind} for column in columns],
        "to_exclude": unused,
    }


def _gaps(source: Any) -> dict[str, int] | None:
    """Return the number of missing values of features and targets by column, from one read; None if that fails."""
    from contextlib import closing

    import numpy as np

    from .._core.progress import track
    from ..data import DataError

    names = [*(source.feature_names or map(str, range(source.n_columns))), *(source.target_names or [])]
    counts = np.zeros(len(names), int)
    source.allow_missing = True
    try:
        with closing(source.blocks()) as blocks:
            for X, y in track(blocks, "one read", source.n_rows, lambda block: len(block[0])):
                columns = [X] if y is None or y.dtype.kind not in "biuf" else [X, y.reshape(len(y), -1)]
                found = np.concatenate([np.isnan(part).sum(axis=0) for part in columns])
                counts[: len(found)] += found[: len(counts)]
    except DataError:
        # Strings among numbers, or infinity: a fit will report it.
        return None
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}


def _data_texts(facts: dict[str, Any]) -> dict[str, str]:
    from .._core.memory import format_bytes
    from ..data.columns import listed

    texts = {
        "data": facts["data"],
        "rows": f"{facts['n_rows']:,}",
        "features": f"{facts['n_features']:,} of {facts['dtype']}",
        "in memory": format_bytes(facts["bytes_in_memory"]),
    }
    if facts["targets"]:
        texts["targets"] = listed(facts["targets"])
    if facts["missing"] is not None:
        gaps = facts["missing"]
        most = sorted(gaps, key=gaps.__getitem__, reverse=True)
        texts["missing"] = (
            f"{sum(gaps.values()):,} values in {len(gaps):,} columns, most in {most[0]}" if gaps else "none"
        )
    if facts["features"] is not None:
        names_by_type: dict[str, list[str]] = {}
        for column in facts["columns"]:
            names_by_type.setdefault(column["type"], []).append(column["name"] or "(no name)")
        texts |= {kind: listed(names) for kind, names in names_by_type.items()}
    if facts["to_exclude"]:
        texts["no numbers"] = f"pass --exclude {as_option(facts['to_exclude'])}"
    return texts
