"""Fits that are killed at random moments, again and again: each must end with the model of a fit that is not.

``python -m tests.files.kills 50 0 multipass gram`` kills each kind 50 times, from seed 0 on; without names, all kinds.
"""

import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from plstream import (
    CIPLS,
    IncrementalPLS,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    VIPSelector,
    open_source,
    save,
)
from plstream.files import fit_source

MODELS = {
    "multipass": IncrementalPLS(3),
    "gram": IncrementalPLS(3, solver="gram"),
    "sketch": IncrementalPLS(2, solver="sketch", sketch_size=40),
    "cipls": CIPLS(3),
    "cross-validation": IncrementalPLSCV(3, cv=3),
    "classifier-cross-validation": IncrementalPLSClassifierCV(3, cv=3),
    "selector": VIPSelector(CIPLS(3), n_features_to_select=9),
    "exact-selector": VIPSelector(IncrementalPLS(3)),
}
# Of these, data is read several times.
EXACT = {"multipass", "exact-selector"}
N_COLUMNS = 100
N_BLOCKS = 22


def write_data(kind, path):
    # More than 32 MiB in float64, as only such data is read several times.
    n = 44_000 if kind in EXACT else 6_600
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_COLUMNS)).astype(np.float32) * np.geomspace(3, 0.3, N_COLUMNS, dtype=np.float32)
    X[:, -1] = X[:, :5].sum(axis=1) + rng.normal(size=n)
    np.save(path, X)
    np.save(path.with_name("labels.npy"), np.digitize(X[:, -1], [-2.0, 2.0]))


def fit(kind, data, folder, out):
    n_rows = len(np.load(data, mmap_mode="r"))
    target = data.with_name("labels.npy") if "classifier" in kind else N_COLUMNS - 1
    source = open_source(data, target=target, batch_size=n_rows // N_BLOCKS)
    with warnings.catch_warnings():
        # A sketch may be small for this data.
        warnings.simplefilter("ignore")
        fit_source(MODELS[kind], source, checkpoint=folder, every_rows=1, on_fitted=lambda model: save(model, out))


def start(kind, data, folder, out):
    """Return the id of a process that fits."""
    with warnings.catch_warnings():
        # A warning about threads, none of which is running at the time of the fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    status = 1
    try:
        fit(kind, data, folder, out)
        status = 0
    finally:
        os._exit(status)


def main(n_kills, seed, kinds):
    chance = random.Random(seed)  # noqa: S311
    with TemporaryDirectory() as name:
        data, folder, expected, out = (Path(name, part) for part in ("data.npy", "checkpoints", "expected", "out"))
        for kind in kinds:
            write_data(kind, data)
            # The first compiles loops.
            for _ in range(2):
                begun = time.monotonic()
                fit(kind, data, folder, expected)
                seconds = time.monotonic() - begun
            counts = Counter()
            while counts["kills"] < n_kills or not counts["same"] or any(folder.glob("checkpoint-*")):
                process = start(kind, data, folder, out)
                if counts["kills"] < n_kills:
                    time.sleep(chance.uniform(0, 0.5) * seconds)
                    os.kill(process, signal.SIGKILL)
                _, status = os.waitpid(process, 0)
                if os.WIFSIGNALED(status):
                    counts["kills"] += 1
                    counts["with a checkpoint"] += any(folder.glob("checkpoint-*"))
                    continue
                assert status == 0, "the fit failed"
                assert out.read_bytes() == expected.read_bytes(), "the model is another one"
                assert not [*folder.iterdir()], "something was left behind"
                out.unlink()
                counts["same"] += 1
            sys.stdout.write(f"{kind}: {dict(counts)}, {seconds:.2f} s a fit\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or MODELS)
