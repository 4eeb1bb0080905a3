"""Saving with hardly any memory left: the file is complete, or an error is raised and the old file is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from plstream import IncrementalPLS, load, save
from plstream.files.checkpoints import Checkpoint, CheckpointFolder

warnings.simplefilter("error")
X = np.random.default_rng(0).normal(size=(1200, 2000))
large = IncrementalPLS(solver="gram").partial_fit(X[:30], X[:30, 0])
# All rows wait, and those are copied to be saved.
waiting = IncrementalPLS(solver="sketch", sketch_size=1500).partial_fit(X, X[:, 0])
path = Path(sys.argv[1], "model.plstream")
folder = CheckpointFolder(sys.argv[1], 1, None)
save(IncrementalPLS(7), path)
del X

n_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (n_bytes + (6 << 20), hard))
try:
    save(waiting, path)
except MemoryError as error:
    print(error)
assert load(path).n_components == 7
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    folder.try_to_write(Checkpoint(IncrementalPLS(solver="sketch", sketch_size=1500), n_rows=1200, model=waiting))
print(*(entry.message for entry in caught))
save(large, path)

resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
assert load(path).n_samples_seen_ == 30
assert [each.name for each in Path(sys.argv[1]).iterdir()] == ["model.plstream"]
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to know how much memory is in use")
def test_with_little_memory(tmp_path):
    command = [sys.executable, "-c", CHILD, tmp_path]
    # Arrays that are freed go back to the system, so that what is in use is what counts.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    said, warned = result.stdout.splitlines()
    assert said.startswith("There is not enough memory to write ")
    assert said.endswith("model.plstream'; nothing was written. Free some memory and try again.")
    assert warned.startswith("No checkpoint could be written; the fit continues without it: There is not enough memory")
