"""Every example runs."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {"out_of_core.py": ["--mebibytes", "160"]}
# All others draw plots.
NEEDED = {"on_dask.py": ["dask", "matplotlib"], "out_of_core.py": [], "plots.py": ["matplotlib", "pandas"]}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(name, tmp_path):
    """In an empty folder, which it must leave empty."""
    for package in NEEDED.get(name, ["matplotlib"]):
        pytest.importorskip(package, reason=f"needs {package}")
    command = [sys.executable, str(EXAMPLES / name), *SMALL.get(name, [])]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)  # noqa: S603
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout
    assert not list(tmp_path.iterdir())
    # Only Linux limits the memory of a process.
    if name == "out_of_core.py" and sys.platform == "linux":
        assert_within_memory(result.stdout)


def assert_within_memory(output):
    """The example allows 64 MiB for a file of 160; PLSRegression cannot do with so little."""
    assert "PLSRegression, the whole file    MemoryError" in output
    peak = next(line for line in output.splitlines() if "peak memory" in line)
    assert float(peak.split()[2]) < 64
