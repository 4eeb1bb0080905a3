"""Every example runs."""

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {"out_of_core.py": ["--mebibytes", "160"], "select_features.py": ["--keep", "0.2"]}

NEEDED = {"on_dask.py": "dask", "pictures.py": "matplotlib"}


@cache
def run(name):
    """Return what an example prints when it is run in an empty folder, which it must leave empty."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(EXAMPLES / name), *SMALL.get(name, [])]
        result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)  # noqa: S603
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assert not list(Path(folder).iterdir())
        return result.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(name):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name], reason=f"needs {NEEDED[name]}")
    assert run(name)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_out_of_core_stays_within_its_memory():
    """The example allows 64 MiB for a file of 160; PLSRegression cannot do with so little."""
    output = run("out_of_core.py")
    assert "PLSRegression, the whole file    MemoryError" in output
    peak = next(line for line in output.splitlines() if "peak memory" in line)
    assert float(peak.split()[2]) < 64
