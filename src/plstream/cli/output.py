"""Checks of inputs and outputs, and printing of tables, JSON and facts about models."""

from __future__ import annotations

import csv
import glob
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from .._core.errors import counted, printable
from .._core.remote import RemotePath, path_of
from .._core.urls import shown as name_of
from ..data.files import require_readable
from ..data.formats import split_key
from ..data.sql import is_database

STANDARD_OUTPUT = "-"


def require_inputs(*names: str | Path | None) -> None:
    """Raise OSError if a model or data is missing."""
    for name in map(str, filter(None, names)):
        if name == STANDARD_OUTPUT or is_database(name):
            continue
        path = split_key(name, None)[0]
        is_pattern = path.is_pattern if isinstance(path, RemotePath) else glob.has_magic(str(path))
        if not is_pattern:
            require_readable(path)


def require_free(path: str | Path, *, force: bool, endings: tuple[str, ...] = (), or_printed: bool = False) -> None:
    """Raise an error if a file cannot be written because it exists, its folder does not, or it is standard output."""
    if str(path) == STANDARD_OUTPUT:
        if or_printed:
            return
        raise ValueError("This command does not write to standard output: name a file with -o.")
    file = path_of(path)
    if endings and file.suffix not in endings:
        raise ValueError(f"{file} must end in {', '.join(endings)}, because that determines the format.")
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: name a file in it.")
    if file.exists() and not force:
        raise FileExistsError(f"{file} exists already: pass --force to replace it, or another name.")
    if isinstance(file, RemotePath):
        return
    folder = file.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}: make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"There is no permission to write to {folder}.")


def standard_output() -> Any:
    """Return standard output; on a terminal, control characters are escaped."""
    return _Terminal(sys.stdout) if sys.stdout.isatty() else sys.stdout


@contextmanager
def opened_output(output: str | Path, *, force: bool) -> Iterator[Any]:
    """Open standard output, or a binary file that appears when it is complete."""
    from ..files import replacing

    if str(output) == STANDARD_OUTPUT:
        yield standard_output()
        return
    with replacing(output, overwrite=force) as file:
        yield file


class _Terminal(io.TextIOBase):
    """A terminal that escapes control characters of names and labels."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._terminal.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows with the same keys as CSV, with six digits."""
    write_table(standard_output(), list(rows[0]), rows)


def write_table(file: Any, names: list[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as CSV to a text or binary file, with six digits."""
    values = ((row[name] for name in names) for row in rows)
    write_csv(file, names, ([f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in values))


def write_csv(file: Any, names: list[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write names and rows as CSV to a text or binary file."""
    text = file if isinstance(file, io.TextIOBase) else io.TextIOWrapper(file, encoding="utf-8", newline="")
    csv.writer(text, lineterminator="\n").writerows(chain([names], rows))
    text.flush()
    if text is not file:
        text.detach()


def print_facts(facts: dict[str, Any]) -> None:
    """Print names with values, aligned."""
    width = max(map(len, facts)) + 1
    for name, fact in facts.items():
        # Names and labels may contain control sequences of terminals.
        typer.echo(printable(f"{(name + ':').ljust(width)} {fact}"))


def print_json(result: Any) -> None:
    """Print a result as JSON; NaN and infinity become null."""
    typer.echo(json.dumps(_plain(result), indent=1, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """Convert dicts, lists, arrays and numbers to JSON types."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def print_model(path: Path, model: Any, more: dict[str, Any], *, as_json: bool, note: str = "") -> None:
    """Print the facts about a fitted model in a file: in one line, or with more facts as JSON."""
    facts = facts_of(model)
    if as_json:
        print_json({"model": name_of(path), **more, **facts})
    else:
        typer.echo(f"{name_of(path)}: {format_facts(facts)}{note}")


def facts_of(model: Any) -> dict[str, Any]:
    """Return the class, sizes and figures of merit of a fitted model."""
    found: dict[str, Any] = {
        "class": type(model).__name__,
        "n_components": int(model.n_components_),
        "n_features": int(model.n_features_in_),
        "n_rows": int(model.n_samples_seen_),
    }
    if hasattr(model, "solver_"):
        found["solver"] = model.solver_
    if getattr(model, "missing", "error") == "model":
        found["n_missing"] = int(model.n_missing_.sum())
    if hasattr(model, "classes_"):
        found["classes"] = model.classes_.tolist()
    if hasattr(model, "y_explained_variance_ratio_"):
        found["y_explained_variance"] = float(model.y_explained_variance_ratio_.sum())
    if hasattr(model, "cv_results_"):
        results = model.cv_results_
        found["cross_validation"] = {
            "rule": model.rule,
            "max_components": int(results["n_components"][-1]),
            "score": float(model.best_score_),
            "scores": results["mean_test_score"],
            "standard_errors": results["se_test_score"],
        }
    return found


def format_facts(its: dict[str, Any]) -> str:
    """Return the facts about a fitted model in one line."""
    text = f"{its['class']}, {counted(its['n_components'], 'component')} of {counted(its['n_features'], 'feature')}"
    text += f", {counted(its['n_rows'], 'row')}"
    if its.get("n_missing"):
        text += f" with {counted(its['n_missing'], 'missing value')} completed"
    if "solver" in its:
        text += f", {its['solver']}"
    if "classes" in its:
        text += f", {counted(len(its['classes']), 'class', 'classes')}"
    if "y_explained_variance" in its:
        text += f", explains {its['y_explained_variance']:.1%} of y"
    validation = its.get("cross_validation")
    if validation is None:
        return text
    does = "classifies" if "classes" in its else "predicts"
    what = " of held-out rows correctly" if "classes" in its else " of y in held-out rows"
    text += f", {does} {validation['score']:.1%}{what}"
    if its["n_components"] == validation["max_components"] < its["n_features"]:
        text += f"; this is the largest number tried: try more with --max-components {2 * its['n_components']}"
    return text
