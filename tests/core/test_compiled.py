"""Compiled loops, and a cache on disk that may fail."""

import os
import subprocess
import sys

import pytest

CODE = """
import shutil, sys
from pathlib import Path
import numpy as np
from plstream import CIPLS
from plstream.online import state, cipls
cipls.cipls_normalized.dispatcher, state.subtract_running_means.dispatcher
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


MODULE = """
from plstream._core.compiled import compiled

@compiled
def double(x):
    return 2 * x

print(double(21.0))
"""


@pytest.mark.parametrize(("suffix", "left"), [(".nbi", 0), (".nbi", 40), (".nbc", 0), (".nbc", 40)])
def test_a_damaged_cache_is_replaced(tmp_path, suffix, left):
    (tmp_path / "module.py").write_text(MODULE)

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "module.py"]
        result = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        assert result.stdout.strip() == "42.0", result.stderr
        return {path.name: path.stat().st_size for path in tmp_path.rglob(f"*{suffix}")}

    before = run()
    assert before
    for name in before:
        (path,) = tmp_path.rglob(name)
        path.write_bytes(path.read_bytes()[:left])
    # The third run finds what the second has written.
    after = run()
    assert after.keys() == before.keys()
    assert min(after.values()) > left
    assert run() == after


NESTED = """
import numpy as np
from plstream import CCIPCA, OLPLS, SGDPLS
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(200, 29)), rng.normal(size=(200, 9))
for model in CCIPCA(3), OLPLS(3), SGDPLS(3, random_state=0):
    print(model.fit(X, Y).transform(X).tobytes().hex())
"""


def test_loading_from_the_cache_changes_no_bit(tmp_path):
    """The process that compiles a loop, which calls others, and one that loads it have the same results."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    results = {
        subprocess.run([sys.executable, "-c", NESTED], check=True, capture_output=True, env=environment).stdout  # noqa: S603
        for _ in range(2)
    }
    assert len(results) == 1
