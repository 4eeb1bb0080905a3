"""Run the code of the pages that have pictures, and write these: python docs/draw_pictures.py."""

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent.resolve()
PAGES = ("pictures.md", "spectra.md")


def pictures() -> Iterator[tuple[str, Any]]:
    """Yield the name of each picture's file, and its figure."""
    for page in PAGES:
        names: dict[str, Any] = {}
        parts = re.findall(
            r"```python\n(.*?)```|!\[[^]]+\]\(([^)]+)\)", (HERE / page).read_text(encoding="utf-8"), re.DOTALL
        )
        with TemporaryDirectory() as folder, chdir(folder):
            for code, file in parts:
                if code:
                    exec(compile(code, page, "exec"), names)  # noqa: S102
                else:
                    yield file, names["display"].figure_


if __name__ == "__main__":
    for file, figure in pictures():
        figure.savefig(HERE / file, dpi=100, metadata={"Software": None})
