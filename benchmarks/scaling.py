"""How fits on Dask grow with workers: one process against two, what travels, and what that makes of large clusters.

Run ``python benchmarks/scaling.py``, with ``--quick`` to see whether it works, or with ``--tables 1`` for some tables
alone. Workers are processes of this machine with one thread each. With as many workers as cores there is no core left
for the scheduler and the client, so ratios are a little less than what they would be on machines of their own.
"""

from __future__ import annotations

import argparse
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from measure import Spread, add_tables_option, log, markdown, take_turns
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS

GB = 1e9
REPEATS = 5


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
    Case("gram", "gram", 16_000, 1000, 5, 1000),
    Case("sketch", "sketch", 8000, 4000, 5, 500),
    Case("multipass", "multipass", 32_000, 1000, 4, 2000),
    Case("multipass, generated", "multipass", 16_000, 1000, 2, 1000, kept=False),
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


def scaling(one: Client, two: Client, cases: tuple[Case, ...], repeats: int) -> str:
    """Return the table of times with one worker and with two."""
    rows = []
    for case in cases:
        log(f"scaling: {case.name}")
        strong = measure([(one, case), (two, case)], repeats)
        weak = measure([(one, case), (two, case.times(2))], repeats)
        rows.append(
            [
                case.name,
                f"{case.n_rows:,} x {case.n_columns:,}",
                str(case.reads),
                Spread.of(case.reads * case.gigabytes / strong[:, 0]).text(2),
                Spread.of(strong[:, 0] / strong[:, 1]).text(2),
                Spread.of(2 * weak[:, 0] / weak[:, 1]).text(2),
            ]
        )
    header = ("fit", "X", "reads", "GB/s, one worker", "strong: two against one", "weak: two against one")
    return f"""## 1. Two workers against one

The same data with one worker and with two (strong), and twice the rows with two (weak, in rows a second): times as many
rows a second. Median (least-largest) of {repeats} rounds in which both take turns.

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


def overhead(two: Client) -> float:
    """Return the seconds that a read takes with next to nothing to read: what is left is graphs, tasks and messages."""
    case = Case("nothing", "multipass", 16 * 8, 8, 4, 8)
    X, y = placed(two, case)
    fit_on(two, case, X, y)
    start = time.perf_counter()
    fit_on(two, case, X, y)
    return (time.perf_counter() - start) / case.reads


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, two rounds: only to see whether it works")
    add_tables_option(parser, 3)
    arguments = parser.parse_args()
    cases, repeats = (QUICK, 2) if arguments.quick else (CASES, REPEATS)
    with ExitStack() as stack, threadpool_limits(1):
        one, two = (stack.enter_context(cluster_of(n)) for n in (1, 2))
        tables: list[Callable[[], str]] = [
            lambda: scaling(one, two, cases, repeats),
            lambda: traffic(two, cases),
            lambda: f"## 3. A read of nothing\n\n{1000 * overhead(two):.0f} ms\n",
        ]
        for number in arguments.tables:
            print(tables[number - 1]())


if __name__ == "__main__":
    main()
