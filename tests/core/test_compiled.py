"""Compiled loops, and a cache on disk that may fail."""

import os
import subprocess
import sys

CODE = """
import shutil, sys
from pathlib import Path
import numpy as np
from plstream import CIPLS
from plstream.online import _base, cipls
cipls.cipls_normalized.dispatcher, _base.subtract_running_mean.dispatcher
folder = Path(sys.argv[1])
shutil.rmtree(folder)
folder.write_text("in the way")
X = np.random.default_rng(0).normal(size=(20, 3))
print(CIPLS(1).fit(X, X[:, 0]).x_weights_.shape)
"""


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", CODE, str(folder)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)  # noqa: S603
    assert result.stdout.strip() == "(3, 1)", result.stderr
