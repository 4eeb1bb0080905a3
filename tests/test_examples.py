"""Every example runs."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {"out_of_core.py": ["--mebibytes", "160"]}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example(path, tmp_path):
    command = [sys.executable, str(path), *SMALL.get(path.name, [])]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)  # noqa: S603
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_out_of_core_stays_within_its_memory():
    """The example allows IncrementalPLS 64 MiB for 160; PLSRegression cannot do with so little."""
    command = [sys.executable, str(EXAMPLES / "out_of_core.py"), *SMALL["out_of_core.py"]]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    assert "PLSRegression, the whole file    MemoryError" in output
    peak = next(line for line in output.splitlines() if "peak memory" in line)
    assert float(peak.split()[2]) < 64
