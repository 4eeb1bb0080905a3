"""Memory of a fit on a cluster: peaks of workers and client, for generated data that never exists as a whole.

Run as ``python benchmarks/dask_memory.py [GIGABYTES] [WORKERS] [WORKER_MEMORY]``, by default 10 GB, two workers of one
thread, 1 GB each.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Self

import dask.array as da
from distributed import Client, LocalCluster

from plstream import IncrementalPLS

N_COLUMNS = 1000
CHUNK_BYTES = 40_000_000


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Watch:
    """Notes the largest memory of this process while it runs."""

    def __enter__(self) -> Self:
        self.before = self.most = resident_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, resident_bytes())


def measure(solver: str, n_bytes: int, n_workers: int, memory: str) -> None:
    """Fit once on a fresh cluster, and print the peaks."""
    n = n_bytes // (8 * N_COLUMNS)
    step = CHUNK_BYTES // (8 * N_COLUMNS)
    rng = da.random.default_rng(0)
    X, y = rng.random((n, N_COLUMNS), chunks=(step, N_COLUMNS)), rng.random(n, chunks=step)
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, memory_limit=memory, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        with Watch() as client_memory:
            model = IncrementalPLS(2, solver=solver).fit(X, y)
        seconds = time.perf_counter() - start
        workers = max(client.run(peak_bytes).values())
    assert model.n_samples_seen_ == n
    grown = client_memory.most - client_memory.before
    print(
        f"{solver:10s} {X.nbytes / 1e9:5.1f} GB in {X.numblocks[0]} chunks: {seconds:6.1f} s, "
        f"a worker {workers / 1e6:.0f} MB of {memory}, the client {grown / 1e6:+.1f} MB"
    )


def main() -> None:
    """Measure all solvers."""
    gigabytes, n_workers, memory = (*sys.argv[1:], *("10", "2", "1GB")[len(sys.argv) - 1 :])
    for solver in ("multipass", "gram", "sketch"):
        measure(solver, int(float(gigabytes) * 1e9), int(n_workers), memory)


if __name__ == "__main__":
    main()
