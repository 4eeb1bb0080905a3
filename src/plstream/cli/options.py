"""Arguments and options shared by commands, and functions that open data and load models."""

from __future__ import annotations

import csv
import inspect
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ..data import Source

_TAB = "\t"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}


class Method(StrEnum):
    """Methods that can be fitted: the names of estimators in this package, and on the command line."""

    IncrementalPLS = "incremental-pls"
    IncrementalPLSClassifier = "incremental-pls-classifier"
    CIPLS = "cipls"
    CCIPCA = "ccipca"
    IPLS = "ipls"
    OLPLS = "olpls"
    SGDPLS = "sgdpls"
    IncrementalLDA = "incremental-lda"


def _formats() -> list[str]:
    """Return the names of formats, for completion."""
    from ..data.formats import FORMATS

    return list(FORMATS)


Data = Annotated[
    str, typer.Argument(metavar="DATA", help="File, folder or pattern such as 'day*.csv'; - for standard input.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, written by plstream fit.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COL|FILE",
        help="Responses or labels: columns by name or number, such as a,b, or a file.",
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="OUT", help="File to write, .npy, .csv or .parquet; - for CSV on standard output."
    ),
]
Keep = Annotated[list[str] | None, typer.Option(metavar="COLS", help="Columns to copy from the data, such as an id.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and show what would be done.")]


@dataclass(frozen=True)
class Reading:
    """How data is read: the options shared by all commands with data."""

    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="COLS", help="Features to use, by name, number or range: a,b or 3:10. Default: all."),
    ] = None
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="COLS", help="Columns to leave out, as in --columns.")
    ] = None
    where: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help="Rows to use, such as \"year >= 2020 and site in ('A', 'B')\"."),
    ] = None
    query: Annotated[
        str | None, typer.Option(metavar="SQL", help="SQL query whose result is read, if DATA is a database.")
    ] = None
    data_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format, such as csv or parquet, if the file name does not show it.",
            autocompletion=_formats,
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(help="Whether the first line of text files holds names. Default: detected.", show_default=False),
    ] = None
    delimiter: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Delimiter of text fields, such as ';' or tab.")
    ] = None

    def open(self, data: str, target: list[str] | None = None, model: Any = None, **more: Any) -> Source:
        """Open data; for a model, select its features by name if both have names."""
        from ..data import open_source
        from ..data.columns import NamesIfAny

        names = None if self.columns else getattr(model, "feature_names_in_", None)
        source = open_source(
            data,
            as_target(target),
            columns=as_columns(self.columns) if names is None else NamesIfAny(map(str, names)),
            exclude=as_columns(self.exclude),
            where=self.where,
            **self.file_options,
            **more,
        )
        if model is not None:
            from ..rows import validate_source

            validate_source(model, source, reset=False)
        return source

    @property
    def file_options(self) -> dict[str, Any]:
        """The options of :func:`plstream.open_source` for file formats."""
        delimiter = _TAB if self.delimiter in {"tab", "\\t"} else self.delimiter
        return {"format": self.data_format, "header": self.header, "delimiter": delimiter, "query": self.query}

    @property
    def given(self) -> list[str]:
        """The given options."""
        values = {field.name.removeprefix("data_"): getattr(self, field.name) for field in fields(self)}
        return [f"--{name}" for name, value in values.items() if value is not None]


@dataclass(frozen=True)
class Roles:
    """Columns that are neither features nor targets."""

    weight: Annotated[str | None, typer.Option(metavar="COL", help="Column with sample weights.")] = None
    groups: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with groups, each of which -c auto keeps in one fold.")
    ] = None
    fold_column: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with the fold of each row for -c auto, numbered from 0.")
    ] = None

    def options(self, *, validates: bool) -> dict[str, Any]:
        """Return the given options as parameters of :func:`plstream.open_source`.

        Raises ValueError for those of folds if the model does not cross-validate.
        """
        for option, column in (("groups", self.groups), ("fold-column", self.fold_column)):
            if column is not None and not validates:
                raise ValueError(f"--{option} is for cross-validation: fit the model with -c auto.")
        columns = {"weight": self.weight, "groups": self.groups, "folds": self.fold_column}
        return {name: as_column(text) for name, text in columns.items() if text is not None}


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which every field of a dataclass parameter is a separate option."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    signature = inspect.signature(command, eval_str=True)
    for parameter in signature.parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(group, include_extras=True)
        groups[parameter.name] = group, list(types)
        parameters += [
            inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
            for field in fields(group)
        ]

    @wraps(command)
    def call(**values: Any) -> None:
        for name, (group, names) in groups.items():
            values[name] = group(**{field: values.pop(field) for field in names})
        command(**values)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def as_bytes(text: str | None) -> int | None:
    """Return the number of bytes given by a string such as 512MB.

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
        raise ValueError(f"--memory {text!r} is not an amount of memory: write it as 512MB or 2GiB.")
    return int(n_bytes)


def as_list(texts: list[str] | None) -> list[str]:
    """Return the entries of options that may be repeated, separated by commas, or quoted.

    Examples
    --------
    >>> from plstream.cli.options import as_list
    >>> as_list(["a,b", '"c,d"'])
    ['a', 'b', 'c,d']
    """
    return [entry.strip() for text in texts or [] for row in csv.reader([text]) for entry in row if entry.strip()]


def quoted(entry: str) -> str:
    """Return an entry of a list, in quotes."""
    return '"' + entry.replace('"', '""') + '"'


def as_option(names: Iterable[str]) -> str:
    """Return columns as the value of an option, ready to paste into a shell."""
    return shlex.quote(",".join(quoted(name) if set(name) & set(',"') else name for name in names))


def as_components(text: str | None) -> int | None:
    """Return a number of components; None for auto, or if not given."""
    if text is None or text == "auto":
        return None
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise ValueError(f"--components {text} is neither a number of 1 or more nor auto.")
    return int(text)


def as_classes(text: str | None) -> list[Any] | None:
    """Return labels as integers if all are integers, else as strings."""
    if text is None:
        return None
    labels = as_list([text])
    return [int(label) for label in labels] if all(re.fullmatch(r"-?\d+", label) for label in labels) else list(labels)


def as_columns(texts: list[str] | None) -> list[Any] | None:
    """Return columns by name, number or range; None if not given."""
    from ..data.columns import NameOrNumber

    return [NameOrNumber(entry) for entry in as_list(texts)] or None


def as_column(text: str) -> Any:
    """Return one column by name or number."""
    found = as_columns([text])
    if found is None or len(found) > 1:
        raise ValueError(f"{text!r} is not a single column: name one column.")
    return found[0]


def as_target(texts: list[str] | None) -> Any:
    """Return one column, or a list of them, which makes y two-dimensional."""
    targets = as_columns(texts)
    # A range or several columns make y two-dimensional.
    return targets if targets is None or len(targets) > 1 or isinstance(targets[0].meant(None), slice) else targets[0]


def load_model(path: Path) -> Any:
    """Load a model, or the model of a monitor or tracker."""
    from ..files import load
    from ..monitoring import DriftTracker, Monitor

    loaded = load(path)
    return loaded.model if isinstance(loaded, Monitor | DriftTracker) else loaded
