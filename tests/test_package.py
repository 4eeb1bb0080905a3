"""The package as a whole: public names, cost of import, and direction of dependencies."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import plstream

PACKAGE = Path(plstream.__file__).parent
# Data flows from left to right; a package imports only from those before it.
LAYERS = [
    "_core",
    "data",
    "distributed",
    "rows",
    "pls",
    "states",
    "solvers",
    "estimators",
    "online",
    "selection",
    "monitoring",
    "files",
    "plots",
    "report",
    "vision",
    "experiments",
    "cli",
    "__main__",
]


@pytest.mark.parametrize("name", plstream.__all__)
def test_public_names_are_documented_with_an_example(name):
    assert name in dir(plstream)
    assert ">>>" in inspect.getdoc(getattr(plstream, name))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'PLS'"):
        plstream.PLS  # noqa: B018


def test_import_is_light():
    code = (
        "import sys, plstream; assert 'sklearn' not in sys.modules; "
        "plstream.IncrementalPLS; plstream.CIPLS(); "
        "print(*(name for name in ('numba', 'matplotlib', 'dask') if name in sys.modules))"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == ""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_import_only_from_layers_below(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts == ("__init__",):
        return
    layer = LAYERS.index(parts[0])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == len(parts):
            for name in [node.module] if node.module else [alias.name for alias in node.names]:
                assert LAYERS.index(name.split(".")[0]) < layer, ast.unparse(node)
