"""Run the code in pictures.md, and write the pictures that it shows: python docs/draw_pictures.py."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def pictures() -> Iterator[tuple[str, Any]]:
    """Yield the name of each picture's file, and its figure."""
    names: dict[str, Any] = {}
    text = (HERE / "pictures.md").read_text()
    for code, file in re.findall(r"```python\n(.*?)```|!\[[^]]+\]\(([^)]+)\)", text, re.DOTALL):
        if code:
            exec(compile(code, "pictures.md", "exec"), names)  # noqa: S102
        else:
            yield file, names["display"].figure_


if __name__ == "__main__":
    for file, figure in pictures():
        figure.savefig(HERE / file, dpi=100, metadata={"Software": None})
