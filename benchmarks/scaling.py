"""Scaling of fits on Dask: one process compared with two, data transferred, and estimates for large clusters.

Run ``python benchmarks/scaling.py``, or with ``--quick`` for a quick check. Workers are processes of this machine with
one thread each. With as many workers as cores there is no core left for the scheduler and the client, so ratios are
less than they would be on machines of their own.
"""

from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from measure import Spread, log, markdown, take_turns
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS
from plstream.distributed import reduce

GB = 1e9
REPEATS = 4


@dataclass(frozen=True)
class Case:
    """Data, and how it is fitted."""

    name: str
    solver: str
    n_rows: int
    n_columns: int
    n_components: int
    chunk_rows: int
    kept: bool = True
    """Whether the data is in the workers' memory when the clock starts; else it is generated with each read."""

    @property
    def gigabytes(self) -> float:
        """Size of X."""
        return 8 * self.n_rows * self.n_columns / GB

    @property
    def reads(self) -> int:
        """Times that X is read."""
        return self.n_components + 1 if self.solver == "multipass" else 1

    def times(self, factor: int) -> Case:
        """Return the case with more rows."""
        return Case(
            self.name, self.solver, factor * self.n_rows, self.n_columns, self.n_components, self.chunk_rows, self.kept
        )

    def model(self) -> IncrementalPLS:
        """Return the model to fit."""
        return IncrementalPLS(self.n_components, solver=self.solver)

    def data(self) -> tuple[da.Array, da.Array]:
        """Return X and y, which are nowhere yet."""
        rng = da.random.default_rng(0)
        X = rng.standard_normal((self.n_rows, self.n_columns), chunks=(self.chunk_rows, self.n_columns))
        weights = np.random.default_rng(1).normal(size=self.n_columns)
        return X, X @ weights


CASES = (
    Case("gram", "gram", 48_000, 1000, 5, 3000),
    Case("gram, more rows", "gram", 144_000, 1000, 5, 9000),
    Case("sketch", "sketch", 12_000, 4000, 5, 1000),
    Case("sketch, more rows", "sketch", 32_000, 4000, 5, 2000),
    Case("multipass", "multipass", 64_000, 1000, 4, 4000),
    Case("multipass, generated", "multipass", 32_000, 1000, 2, 2000, kept=False),
)
QUICK = (
    Case("gram", "gram", 4000, 300, 3, 500),
    Case("sketch", "sketch", 2000, 2100, 2, 250),
    Case("multipass", "multipass", 4000, 300, 3, 500),
)


@contextmanager
def cluster_of(n_workers: int) -> Iterator[Client]:
    """Start processes with one thread each, and a client that has to be asked for."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="4GiB"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(n_workers)
        yield client


def fit_on(client: Client, case: Case, X: da.Array, y: da.Array) -> IncrementalPLS:
    """Fit with the workers of a client."""
    with client.as_current(), warnings.catch_warnings():
        # That the sketch has lost much of what is noise in all directions.
        warnings.simplefilter("ignore")
        model = case.model().fit(X, y)
        model.coef_  # noqa: B018  solves, where that has not been done
    return model


def placed(client: Client, case: Case) -> tuple[da.Array, da.Array]:
    """Return data, in the memory of the workers if it is to be kept."""
    X, y = case.data()
    if case.kept:
        with client.as_current():
            X, y = client.persist([X, y])
            wait([X, y])
    return X, y


def measure(cases: list[tuple[Client, Case]], repeats: int) -> np.ndarray:
    """Time fits on different clusters in turns, each after one that does not count."""
    runs: list[Callable[[], object]] = []
    for client, case in cases:
        X, y = placed(client, case)
        runs.append(partial(fit_on, client, case, X, y))
        runs[-1]()
    return take_turns(runs, repeats)


@dataclass
class Measured:
    """What this machine does, for the model of others."""

    rates: dict[str, float]
    """Bytes of X that one worker works off in a second, by solver."""
    columns: dict[str, int]
    """With so many features."""
    read: float = 0.0
    """Seconds that a read takes beside: graphs, tasks and messages."""
    task: float = 0.0
    """Seconds that a task takes the scheduler."""


def scaling(one: Client, two: Client, cases: tuple[Case, ...], repeats: int, measured: Measured) -> str:
    """Return the table of times with one worker and with two."""
    rows = []
    for case in cases:
        log(f"scaling: {case.name}")
        strong = measure([(one, case), (two, case)], repeats)
        weak = measure([(one, case), (two, case.times(2))], repeats)
        rates = case.reads * case.gigabytes / strong[:, 0]
        measured.rates[case.name] = float(np.median(rates)) * GB
        measured.columns[case.name] = case.n_columns
        rows.append(
            [
                case.name,
                f"{case.n_rows:,} x {case.n_columns:,}",
                str(case.reads),
                Spread.of(rates).text(2),
                Spread.of(strong[:, 0] / strong[:, 1]).text(2),
                Spread.of(2 * weak[:, 0] / weak[:, 1]).text(2),
            ]
        )
    header = ("fit", "X", "reads", "GB/s, one worker", "strong: two against one", "weak: two against one")
    return f"""## 1. Two workers against one

The same data with one worker and with two (strong), and twice the rows with two (weak): times as many rows a second.
Median (least-largest) of {repeats} rounds in which both take turns.

{markdown(header, rows)}
"""


@dataclass
class Traffic:
    """Bytes that workers have sent to each other and to the client."""

    sent: int

    @classmethod
    def of(cls, client: Client) -> Traffic:
        """Ask the workers."""
        return cls(sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values()))


def traffic(two: Client, cases: tuple[Case, ...]) -> str:
    """Return the table of what travels."""
    rows = []
    for case in cases:
        log(f"traffic: {case.name}")
        X, y = placed(two, case)
        before = Traffic.of(two)
        model = fit_on(two, case, X, y)
        sent = Traffic.of(two).sent - before.sent
        state = len(pickle.dumps(model)) if case.solver != "multipass" else 8 * 2 * case.n_columns
        rows.append(
            [
                case.name,
                f"{case.gigabytes * 1000:,.0f}",
                f"{sent / 1e6:.2f}",
                f"{sent / case.reads / 1e6:.2f}",
                f"{state / 1e6:.2f}",
            ]
        )
    header = ("fit", "X, MB", "sent by workers, MB", "a read, MB", "a state, MB")
    return f"""## 2. What travels

Bytes that two workers send each other and the client during a fit.

{markdown(header, rows)}
"""


def overheads(two: Client, repeats: int, measured: Measured) -> str:
    """Measure what a read takes with next to nothing to read, in few tasks and in many."""
    times = {}
    for n_tasks in (16, 512):
        log(f"overhead: {n_tasks} tasks")
        case = Case("nothing", "multipass", 8 * n_tasks, 8, 4, 8)
        X, y = placed(two, case)
        with client_units(n_tasks):
            runs = [partial(fit_on, two, case, X, y)]
            runs[0]()
            times[n_tasks] = float(np.median(take_turns(runs, repeats))) / case.reads
    measured.task = max(times[512] - times[16], 0.0) / (512 - 16)
    measured.read = max(times[16] - 16 * measured.task, 0.0)
    return f"""## 3. What a read takes beside

With next to nothing to read, a read takes {1000 * measured.read:.0f} ms,
and {1000 * measured.task:.2f} ms more for each task.
"""


@contextmanager
def client_units(n_tasks: int) -> Iterator[None]:
    """Let a read have as many tasks as there are blocks, up to a number."""
    before = reduce._FEWEST_UNITS
    reduce._FEWEST_UNITS = n_tasks
    try:
        yield
    finally:
        reduce._FEWEST_UNITS = before


@dataclass(frozen=True)
class Job:
    """Data that is not here, and a fit of it."""

    name: str
    n_rows: float
    n_columns: int
    itemsize: int
    solver: str
    n_components: int = 10

    @property
    def n_bytes(self) -> float:
        """Size of X."""
        return self.n_rows * self.n_columns * self.itemsize

    @property
    def reads(self) -> int:
        """Times that X is read."""
        return self.n_components + 1 if self.solver == "multipass" else 1

    def state_bytes(self) -> float:
        """Size of what is merged."""
        m = self.n_columns
        return {"gram": 8.0 * m * m, "sketch": 4.0 * 3 * 240 * m, "multipass": 16.0 * m}[self.solver]

    def seconds(self, n_workers: int, measured: Measured) -> float:
        """Return how long it takes: reads, merges up the tree, and the scheduler's work on all tasks."""
        rate = measured.rates[self.solver] * (self.itemsize / 8)
        if self.solver == "gram":
            # The work on a number grows with the number of features.
            rate *= measured.columns["gram"] / self.n_columns
        kept = self.n_bytes <= KEPT_SHARE * n_workers * WORKER_BYTES
        first = self.n_bytes / n_workers / min(rate, STORAGE)
        later = self.n_bytes / n_workers / (rate if kept else min(rate, STORAGE))
        n_tasks = TASKS * n_workers
        merges = np.ceil(np.log2(n_tasks)) * (LATENCY + self.state_bytes() / NETWORK)
        return float(first + (self.reads - 1) * later + self.reads * (measured.read + n_tasks * measured.task + merges))


# A worker is a core with 8 GB. What it reads from storage and sends to others in a second, and seconds a message takes.
WORKER_BYTES, KEPT_SHARE = 8 * GB, 0.3
STORAGE, NETWORK, LATENCY = 0.2 * GB, 0.5 * GB, 0.001
TASKS = 4
DOLLARS_AN_HOUR = 0.05
JOBS = (
    Job("1 TB, 1,000 features", 1.25e8, 1000, 8, "multipass"),
    Job("1 TB, 1,000 features", 1.25e8, 1000, 8, "gram"),
    Job("100 TB, 1,000 features", 1.25e10, 1000, 8, "multipass"),
    Job("100 TB, 1,000 features", 1.25e10, 1000, 8, "gram"),
    Job("ImageNet, 1.28 million x 25,088", 1.28e6, 25_088, 4, "multipass"),
    Job("ImageNet, 1.28 million x 25,088", 1.28e6, 25_088, 4, "sketch"),
    Job("ImageNet-21k, 14.2 million x 25,088", 1.42e7, 25_088, 4, "multipass"),
    Job("ImageNet-21k, 14.2 million x 25,088", 1.42e7, 25_088, 4, "sketch"),
)


def projected(measured: Measured) -> str:
    """Return the table of times and costs on clusters."""
    workers = (10, 100, 1000)
    rows = []
    for job in JOBS:
        times = [job.seconds(n, measured) for n in workers]
        cells = [f"{_duration(t)}, ${n * t / 3600 * DOLLARS_AN_HOUR:,.2f}" for n, t in zip(workers, times, strict=True)]
        rows.append([job.name, job.solver, str(job.reads), *cells])
    header = ("X", "solver", "reads", *(f"{n:,} workers" for n in workers))
    return f"""## 4. Clusters that are not here

Ten components. Not measured, but computed from the tables above: bytes divided by workers and by the rate of one, for
every read; log2(tasks) merges, one after the other; and the scheduler's time for {TASKS} tasks a worker.

{markdown(header, rows)}

Assumed: a worker is one core like those here, with {WORKER_BYTES / GB:.0f} GB; it reads {STORAGE / GB:.1f} GB/s
from storage and sends {NETWORK / GB:.1f} GB/s to others, all of them at the same time; data stays in memory between
reads if it takes at most {KEPT_SHARE:.0%} of it; a core costs ${DOLLARS_AN_HOUR:.2f} an hour; none fails.
"""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, two rounds: only to see whether it works")
    arguments = parser.parse_args()
    cases, repeats = (QUICK, 2) if arguments.quick else (CASES, REPEATS)
    with ExitStack() as stack, threadpool_limits(1):
        one, two = (stack.enter_context(cluster_of(n)) for n in (1, 2))
        measured = Measured({}, {})
        print(scaling(one, two, cases, repeats, measured), flush=True)
        print(traffic(two, cases), flush=True)
        print(overheads(two, repeats, measured), flush=True)
    print(projected(measured))


if __name__ == "__main__":
    main()
