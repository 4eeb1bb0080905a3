"""A few rounds of what ``make fuzz`` does at length."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory and time")
def test_changed_files_are_refused_or_work():
    command = [sys.executable, "-m", "tests.persistence.fuzz", "300"]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    assert "'refused': 2" in result.stdout
