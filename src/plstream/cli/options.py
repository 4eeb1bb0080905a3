"""Arguments and options that commands share, and what they stand for: data that is opened, a model that is loaded."""

from __future__ import annotations

import csv
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..data import Source

_TAB = "\t"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}


class Method(StrEnum):
    """Methods that can be fitted."""

    incremental_pls = "incremental-pls"
    incremental_pls_classifier = "incremental-pls-classifier"
    cipls = "cipls"
    ccipca = "ccipca"
    ipls = "ipls"
    olpls = "olpls"
    sgdpls = "sgdpls"
    incremental_lda = "incremental-lda"


class Format(StrEnum):
    """Formats of data."""

    npy = "npy"
    npz = "npz"
    csv = "csv"
    tsv = "tsv"
    ndjson = "ndjson"
    parquet = "parquet"
    arrow = "arrow"
    hdf5 = "hdf5"
    zarr = "zarr"


Data = Annotated[
    str, typer.Argument(metavar="DATA", help="File, folder or pattern such as 'day*.csv'; - is standard input.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File of a model, from plstream fit.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COL|FILE",
        help="Responses or labels: columns by name or number, or a file. Also a,b.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", metavar="COLS", help="Features to use, by name, number or range: a,b or 3:10. Default: all."
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="COLS", help="Columns to leave out, as in --columns.")
]
DataFormat = Annotated[
    Format | None, typer.Option("--format", help="Format, if the name does not tell.", show_default=False)
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text has names. Default: by its looks.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="SIGN", help="What is between fields of text, such as ';' or tab.")
]
Components = Annotated[
    int | None, typer.Option("--components", "-c", min=1, help="Number of components. Default: 2.", show_default=False)
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="BYTES", help="Bound for model and blocks, such as 512MB or 2GiB.")
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="OUT", help=".npy, .csv or .parquet; - is CSV on standard output.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]


def as_bytes(text: str | None) -> int | None:
    """Return the number of bytes that text such as 512MB stands for.

    Examples
    --------
    >>> from plstream.cli.options import as_bytes
    >>> as_bytes("512MB"), as_bytes("1.5 GiB"), as_bytes("2000")
    (512000000, 1610612736, 2000)
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?|[KMG]I)B?\s*", text.upper())
    n_bytes = 0 if match is None else float(match[1]) * _UNITS[match[2]]
    if not 1 <= n_bytes < 1 << 63:
        raise ValueError(f"--memory {text!r} is no amount of memory: write it as 512MB or 2GiB.")
    return int(n_bytes)


def as_list(texts: list[str] | None) -> list[str]:
    """Return the entries of options that may be repeated, and have commas between entries or quotes around them.

    Examples
    --------
    >>> from plstream.cli.options import as_list
    >>> as_list(["a,b", '"c,d"'])
    ['a', 'b', 'c,d']
    """
    return [entry.strip() for text in texts or [] for row in csv.reader([text]) for entry in row if entry.strip()]


def quoted(entry: str) -> str:
    """Return an entry of such a list, whatever is in it."""
    return '"' + entry.replace('"', '""') + '"'


def as_classes(text: str | None) -> list[Any] | None:
    """Return labels: integers if all of them are, else strings."""
    if text is None:
        return None
    labels = as_list([text])
    return [int(label) for label in labels] if all(re.fullmatch(r"-?\d+", label) for label in labels) else list(labels)


def open_data(
    data: str,
    target: list[str] | None = None,
    columns: list[str] | None = None,
    exclude: list[str] | None = None,
    data_format: Format | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    model: Any = None,
) -> Source:
    """Open data with the options of a command; for a model, with its features, by name wherever both have names."""
    from ..data import open_source
    from ..data.columns import NamesIfAny

    names = None if columns else getattr(model, "feature_names_in_", None)
    source = open_source(
        data,
        _as_target(target),
        columns=_as_columns(columns) if names is None else NamesIfAny(map(str, names)),
        header=header,
        delimiter=_TAB if delimiter in {"tab", "\\t"} else delimiter,
        exclude=_as_columns(exclude),
        format=None if data_format is None else data_format.value,
    )
    if model is not None:
        from ..rows import validate_source

        validate_source(model, source, reset=False)
    return source


def _as_columns(texts: list[str] | None) -> list[Any] | None:
    from ..data.columns import NameOrNumber

    return [NameOrNumber(entry) for entry in as_list(texts)] or None


def _as_target(texts: list[str] | None) -> Any:
    targets = _as_columns(texts)
    # A range, or several columns, is a y of two dimensions.
    return targets if targets is None or len(targets) > 1 or isinstance(targets[0].meant(None), slice) else targets[0]


def load_model(path: Path) -> Any:
    """Load a model, or the model of a monitor or tracker."""
    from ..files import load
    from ..monitoring import DriftTracker, Monitor

    loaded = load(path)
    return loaded.model if isinstance(loaded, Monitor | DriftTracker) else loaded
