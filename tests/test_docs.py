"""Every Python block of the documentation runs, in the order of its page, with the files it refers to.

What a comment gives as the value of an expression is its value.
"""

import ast
import importlib
import io
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import plstream
from plstream import IncrementalPLS, load, open_source, save

from .data.stores import empty_bucket

DOCS = Path(__file__).parents[1] / "docs"
# A comment before a block says why it cannot run here.
BLOCK = re.compile(r"(<!-- not run: .+? -->\n+)?```python\n(.*?)```", re.DOTALL)


def blocks_of(page):
    return [code for why, code in BLOCK.findall(page.read_text(encoding="utf-8")) if not why]


PAGES = [page.stem for page in sorted(DOCS.glob("*.md")) if blocks_of(page)]


def value_in(comment):
    """Return the value that a comment begins with, and the digits after its point, or None."""
    for end in range(len(comment), 0, -1):
        text = comment[:end].rstrip(", ")
        try:
            value = ast.literal_eval(text.replace("array", ""))
        except (SyntaxError, ValueError):
            continue
        return value, len(text.partition(".")[2])
    return None


def run_block(code, where, names):
    """Run statements one by one, and return how many values in comments were compared."""
    n_compared = 0
    for node in ast.parse(code).body:
        comment = code.splitlines()[node.end_lineno - 1].encode()[node.end_col_offset :].decode().strip(" #")
        known = value_in(comment) if isinstance(node, ast.Expr) else None
        if known is None:
            exec(compile(ast.Module([node], []), where, "exec"), names)  # noqa: S102
            continue
        value, expected = eval(compile(ast.Expression(node.value), where, "eval"), names), known[0]  # noqa: S307
        n_compared += 1
        if isinstance(expected, float):
            assert abs(value - expected) <= 0.5 * 10.0 ** -known[1], comment
        elif isinstance(expected, tuple):
            assert all(map(np.allclose, value, expected)), comment
        else:
            np.testing.assert_array_equal(value, expected)
    return n_compared


def spectra(n_rows=60, n_features=8):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_features))
    return X, X[:, :3] @ [1.0, 2.0, 3.0] + 0.1 * random.normal(size=n_rows)


def frame_of(X):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    return pd.DataFrame(X, columns=[f"nm{j}" for j in range(X.shape[1])])


def write_spectra(**more):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    X, y = spectra()
    frame = frame_of(X)
    frame.to_csv("new.csv", index=False)
    frame.assign(moisture=y, **more).to_parquet("spectra.parquet")


def data():
    write_spectra(id=0, date="2026-01-01")
    X, y = spectra()
    np.save("features.npy", X)
    np.save("labels.npy", (y > 0).astype(int))
    lines = [json.dumps({"a": row[0], "b": row[1], "c": row[2], "y": value}) for row, value in zip(X, y, strict=True)]
    Path("standard input").write_text("\n".join(lines))
    frame_of(X).assign(**{"yield": y, "year": 2025}).to_parquet("plant.parquet")
    empty_bucket().pipe_file("bucket/plant/1.parquet", Path("plant.parquet").read_bytes())
    return {}


def models():
    write_spectra()
    return {"model": IncrementalPLS(2).fit(*spectra())}


def selection():
    from sklearn.svm import LinearSVC

    from plstream import InfFS, VIPSelector

    X, y = spectra()
    return {"X": X, "y": y > 0, "VIPSelector": VIPSelector, "InfFS": InfFS, "LinearSVC": LinearSVC}


def report():
    X, y = spectra()
    frame = frame_of(X)
    frame.assign(moisture=y).to_csv("new.csv", index=False)
    save(IncrementalPLS(2).partial_fit(frame, y), "moisture.plstream")
    return {"X": frame, "y": y}


# How many values there are in comments.
COMPARED = {"classification": 9, "monitoring": 2}
# What a page takes for granted, and the packages without which it cannot be run.
PREPARED = {"data": data, "models": models, "report": report, "selection": selection}
NEEDED = {
    "get_started": ["pandas", "matplotlib"],
    "distributed": ["dask"],
    "plots": ["pandas", "matplotlib"],
    "report": ["pandas", "plotly"],
    "spectra": ["pandas", "matplotlib", "plotly", "chemotools"],
}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for package in NEEDED.get(page, []):
        pytest.importorskip(package, reason=f"needs {package}")
    names = PREPARED[page]() if page in PREPARED else {}
    if (piped := Path("standard input")).exists():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.read_bytes())))
    n_compared = 0
    for number, code in enumerate(blocks_of(DOCS / f"{page}.md"), start=1):
        n_compared += run_block(code, f"block {number} of {page}.md", names)
    assert n_compared >= COMPARED.get(page, 0)


def test_session_of_the_tutorial(tmp_path, monkeypatch):
    """The commands in the tutorial print what it shows, for the files that its Python code writes."""
    for package in ("typer", "plotly", *NEEDED["get_started"]):
        pytest.importorskip(package, reason=f"needs {package}")
    monkeypatch.chdir(tmp_path)
    page = DOCS / "get_started.md"
    run_block("\n".join(blocks_of(page)), page.name, {})
    (session,) = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line)[2:] for line in session.splitlines() if line.startswith("$ plstream ")]
    environment = {**os.environ, "PYTHONPATH": str(Path(plstream.__file__).parents[1])}
    written = [
        subprocess.run(  # noqa: S603
            [sys.executable, "-m", "plstream", *arguments], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for arguments in commands
    ]
    assert len(commands) == 4
    assert "".join(written).splitlines() == [line for line in session.splitlines() if not line.startswith("$ ")]


def test_values_in_comments():
    assert value_in("0.52, for the 174 rows") == (0.52, 2)
    assert value_in("array([7, 3]), as y[:2]") == ([7, 3], 0)
    assert value_in("array([0]), array([178.])")[0] == ([0], [178.0])
    assert value_in("about 0.02") is None
    for code in ("1 + 1  # 3", "0.24 + 0  # 0.3", "[1, 2]  # array([1, 3])", "1, 2  # 1, 3"):
        with pytest.raises(AssertionError):
            run_block(code, "a test", {})
    assert run_block("0.246 + 0  # 0.25, or so\n[1, 2]  # array([1, 2])\n3  # about 4", "a test", {}) == 2


def test_blocks_of_the_readme_run(tmp_path, monkeypatch):
    """Those without prompts; with prompts, they are doctests."""
    monkeypatch.chdir(tmp_path)
    frames, _ = (pytest.importorskip(package, reason=f"needs {package}") for package in ("pandas", "pyarrow"))
    X, y = spectra()
    Path("days").mkdir()
    for day in range(2):
        frames.DataFrame(X[day::2], columns=list("abcdefgh")).assign(**{"yield": y[day::2]}).to_parquet(
            f"days/{day}.parquet"
        )
    codes = [code for code in blocks_of(DOCS.parent / "README.md") if ">>>" not in code]
    assert len(codes) == 1
    run_block(
        codes[0],
        "README.md",
        {"IncrementalPLS": IncrementalPLS, "open_source": open_source, "save": save, "load": load},
    )


# Packages whose names are for users, and those that they are built from.
PUBLIC = {
    "data",
    "distributed",
    "estimators",
    "files",
    "monitoring",
    "online",
    "plots",
    "report",
    "selection",
    "vision",
}
INTERNAL = {"_core", "cli", "experiments", "rows", "solvers", "states"}


def test_every_package_is_public_or_internal():
    assert {module.name for module in pkgutil.iter_modules(plstream.__path__) if module.ispkg} == PUBLIC | INTERNAL


@pytest.mark.parametrize("package", ["", *sorted(PUBLIC)])
def test_every_public_name_has_a_page(package):
    module = importlib.import_module(f"plstream.{package}".rstrip("."))
    listed = re.findall(r"^   plstream\.(?:\w+\.)*(\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(module.__all__) <= set(listed)


ROOT = DOCS.parent
# Of Markdown outside of blocks of code, where brackets may mean anything.
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)?)\)")


def text_of(page):
    """Return the text of a page without blocks of code."""
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors_of(page):
    """Return the anchors of the headings of a page, as Sphinx and GitHub make them."""
    lines = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^##? (.+)$", lines, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(text_of(page)):
        address = urlsplit(link)
        if address.scheme:
            assert address.scheme in {"http", "https"}, link
            assert "." in address.netloc, link
            continue
        target = page.parent / address.path if address.path else page
        if target.parent.name == "gallery":  # Made of the examples when the documentation is built.
            target = ROOT / "examples" / f"{target.stem}.py"
        assert target.is_file(), link
        assert not address.fragment or address.fragment in anchors_of(target), link


def test_every_page_is_in_the_contents():
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [page.stem for page in DOCS.glob("*.md") if not re.search(rf"^{page.stem}$", contents, re.MULTILINE)] == [
        "index"
    ]
