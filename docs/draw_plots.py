"""Run the code of the guides that show plots, and write these: python docs/draw_plots.py."""

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent.resolve()
GUIDES = ("get_started.md", "plots.md", "spectra.md")


def plots() -> Iterator[tuple[str, Any]]:
    """Yield the name of each plot's file, and its figure."""
    for guide in GUIDES:
        names: dict[str, Any] = {}
        parts = re.findall(
            r"```python\n(.*?)```|!\[[^]]+\]\(([^)]+)\)", (HERE / guide).read_text(encoding="utf-8"), re.DOTALL
        )
        with TemporaryDirectory() as folder, chdir(folder):
            for code, file in parts:
                if code:
                    exec(compile(code, guide, "exec"), names)  # noqa: S102
                else:
                    yield file, names["display"].figure_


if __name__ == "__main__":
    for file, figure in plots():
        figure.savefig(HERE / file, dpi=100, metadata={"Software": None})
