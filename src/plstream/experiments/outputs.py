"""What is made of results.json: tables in Markdown and in LaTeX, figures, and a page with all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from .._core.errors import import_optional
from .._core.progress import track
from ..files.files import replacing
from .figures import Picture, pictures_of
from .page import page_of
from .tables import tables_of

PAGE = "report.html"
FIGURES = "figures"


class Outputs(NamedTuple):
    """What was written, and what was not and why."""

    files: list[Path]
    missing: str = ""


def write_outputs(results: dict[str, Any], folder: str | os.PathLike[str]) -> Outputs:
    """Write all that can be made of results to a folder.

    Parameters
    ----------
    results : dict
        The content of results.json.
    folder : path
        Where to. Files that are there are replaced.

    Returns
    -------
    outputs : Outputs
        The page, the tables and the figures. Without matplotlib there are no figures, and ``missing`` says so.
    """
    tables = tables_of(results)
    texts = {
        "tables.md": "\n".join(["# The experiments of the CIPLS paper, run again", "", *_about(results), ""])
        + "\n"
        + "\n".join(table.as_markdown() for table in tables),
        "tables.tex": "\n".join(table.as_latex() for table in tables),
    }
    files = [_written(Path(folder, name), text.encode()) for name, text in texts.items()]
    pictures: list[Picture] = []
    missing = ""
    try:
        import_optional("matplotlib", "Drawing figures", "plot")
    except ImportError as error:
        missing = str(error)
    else:
        for picture in track(pictures_of(results), "figures", None, lambda _: 1, "figures"):
            pictures.append(picture)
            Path(folder, FIGURES).mkdir(exist_ok=True)
            files += [
                _written(Path(folder, FIGURES, f"{picture.name}.{kind}"), picture.as_bytes(kind))
                for kind in ("png", "svg")
            ]
    page = page_of(results, pictures, missing).write(Path(folder, PAGE))
    return Outputs([page, *files], missing)


def _written(path: Path, content: bytes) -> Path:
    with replacing(path) as file:
        file.write(content)
    return path


def _about(results: dict[str, Any]) -> list[str]:
    environment = ", ".join(f"{name} {value}" for name, value in results["environment"].items())
    lines = [f"plstream {results['plstream']}, seed {results['seed']}; {environment}.", ""]
    for name, task in results["tasks"].items():
        stands_for = f" The paper's {task['paper']}." if task["paper"] else ""
        size = f"{task['n_rows']:,} rows, {task['n_features']:,} features, {task['n_classes']} classes"
        lines.append(f"- **{name}**: {task['title']}, {size}.{stands_for} {task['note']}".rstrip())
    return lines
