"""What is made of results.json: tables in Markdown and in LaTeX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..persistence.files import replacing
from .tables import tables_of


def write_outputs(results: dict[str, Any], folder: str | os.PathLike[str]) -> list[Path]:
    """Write all that can be made of results to a folder, and return the files.

    Parameters
    ----------
    results : dict
        The content of results.json.
    folder : path
        Where to. Files that are there are replaced.

    Returns
    -------
    files : list of Path
    """
    tables = tables_of(results)
    texts = {
        "tables.md": "\n".join(["# The experiments of the CIPLS paper, run again", "", *_about(results), ""])
        + "\n"
        + "\n".join(table.as_markdown() for table in tables),
        "tables.tex": "\n".join(table.as_latex() for table in tables),
    }
    files = []
    for name, text in texts.items():
        files.append(Path(folder, name))
        with replacing(files[-1]) as file:
            file.write(text.encode())
    return files


def _about(results: dict[str, Any]) -> list[str]:
    environment = ", ".join(f"{name} {value}" for name, value in results["environment"].items())
    lines = [f"plstream {results['plstream']}, seed {results['seed']}; {environment}.", ""]
    for name, task in results["tasks"].items():
        stands_for = f" The paper's {task['paper']}." if task["paper"] else ""
        size = f"{task['n_rows']:,} rows, {task['n_features']:,} features, {task['n_classes']} classes"
        lines.append(f"- **{name}**: {task['title']}, {size}.{stands_for} {task['note']}".rstrip())
    return lines
